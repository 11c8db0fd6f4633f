"""The section on Hub datasets of the page on custom benchmarks, run as it stands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.hub_server import TOKEN, Hub, Repo, serving
from tests.wordnet_splits import own_pictures as own
from tests.wordnet_splits.command import environment

pytestmark = pytest.mark.docs
PAGE = (Path(__file__).resolve().parents[3] / "docs" / "custom-benchmarks.md").read_text("utf-8")
CIFAR10 = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
PROGRAMS = {"wordnet-splits": "wordnet_splits.cli.main", "unknown-eval": "loaders.harness.cli.main"}


def run_section(title: str, folder: Path, variables: Mapping[str, str]) -> None:
    """Run the blocks of a section in order, Python in one session, and compare output and comments."""
    section = PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"```(sh|python)\n(.*?)```", section, re.DOTALL)
    programs = "".join(f'{n}() {{ "{sys.executable}" -m {m} "$@"; }}\n' for n, m in PROGRAMS.items())
    session = "".join(block for language, block in blocks if language == "python")
    last = max(n for n, (language, _) in enumerate(blocks) if language == "python")
    for number, (language, block) in enumerate(blocks):
        if language == "sh":
            start = ["bash", "-e", "-c", programs + block]
        elif number == last:
            start = [sys.executable, "-c", session]
        else:
            continue
        done = subprocess.run(start, cwd=folder, env=variables, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (block, done.stdout, done.stderr)
        if language == "python":
            for said in re.findall(r"print\(.*?\)  # (?:\.\.\. )?(.*)$", session, re.MULTILINE):
                assert said in done.stdout, (said, done.stdout)


def test_the_page_of_a_hub_dataset(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the model needs torch")
    datasets = pytest.importorskip("datasets", reason="it loads and saves the dataset")
    features = datasets.Features({"img": datasets.Image(), "label": datasets.ClassLabel(names=CIFAR10)})
    tree = {}
    for split, count in (("train", 60), ("test", 40)):
        pictures = [own.picture(count * 1000 + n).resize((32, 32)) for n in range(count)]
        held = {"img": pictures, "label": [n % 10 for n in range(count)]}
        datasets.Dataset.from_dict(held, features=features).to_parquet(str(tmp_path / "one.parquet"))
        tree[f"plain_text/{split}-00000-of-00001.parquet"] = (tmp_path / "one.parquet").read_bytes()
    hub = Hub(repos={"uoft-cs/cifar10": Repo()})
    hub.repos["uoft-cs/cifar10"].commit(tree)
    with serving(hub):
        caches = {"HF_HOME": str(tmp_path / "hf"), "XDG_CACHE_HOME": str(tmp_path / "cache")}
        address = {"HF_ENDPOINT": hub.address, "HF_TOKEN": TOKEN, "HF_HUB_DISABLE_XET": "1"}
        kept = {n: v for n, v in os.environ.items() if not n.startswith("HF_")}
        run_section("Hub datasets", tmp_path, {**kept, **environment(tmp_path), **caches, **address})
