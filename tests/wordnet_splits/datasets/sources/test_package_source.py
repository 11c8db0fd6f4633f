"""A source of another package, installed with its catalog under the entry point of the sources."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.pretend_source import CATALOG, SOURCE, write_images
from tests.wordnet_splits.command import environment
from wordnet_splits.datasets.sources.source import SOURCES

RECIPE = """
schema = 1
name = "animals"
[[group]]
name = "known"
role = "id"
source = "pretend"
classes = { listed = ["zebra"] }
images = { test = { from = "all", all = true } }
[[group]]
name = "other"
role = "near"
source = "pretend"
classes = { rest = true }
images = { test = { from = "all", all = true } }
"""
CLASSES = """
import json, wordnet_splits as ws
print(json.dumps([item.class_id for item in ws.load_catalog("pretend")]))
"""


def install(folder: Path) -> None:
    """Write what an installer makes of a package with a source: modules, metadata and entry points."""
    text = SOURCE.format(package=SOURCES.folder).replace(
        "    info =", '    catalog_file = Path(__file__).with_name("pretend.tsv")\n    info ='
    )
    (folder / "pretend_source.py").write_text("from pathlib import Path\n" + text, "utf-8")
    (folder / "pretend.tsv").write_text(CATALOG, "utf-8")
    metadata = folder / "pretend-0.1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: pretend\nVersion: 0.1\n")
    (metadata / "entry_points.txt").write_text(f"[{SOURCES.group}]\npretend = pretend_source:Pretend\n")


def test_an_installed_package_adds_a_source_with_its_catalog(tmp_path: Path) -> None:
    install(tmp_path)
    write_images(tmp_path / "pics")
    (tmp_path / "animals.toml").write_text(RECIPE, "utf-8")

    def run(*words: str) -> Any:
        done = subprocess.run(
            [sys.executable, *words],
            cwd=tmp_path,
            env=environment(tmp_path, PYTHONPATH=str(tmp_path)),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    program, more = ("-m", "wordnet_splits.cli.main"), ("--root", "pretend=pics", "--json")
    assert run("-c", CLASSES) == ["zebra", "teapot"]
    states = run(*program, "sources", "check", *more)["sources"]
    (state,) = (row for row in states if row["name"] == "pretend")
    assert state["state"] == "complete"
    (built,) = run(*program, "build", "animals.toml", "--out", "build", *more)["built"]
    actual = {g["group"]: g["actual"] for g in built["groups"] if g["split"] == "test"}
    assert actual == {"known": 2, "other": 1}
