"""``unknown-eval`` on a benchmark of somebody's own: its folder and the pictures are all that it takes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from loaders.harness import Results
from loaders.harness.cli.main import app
from tests.wordnet_splits import own_pictures as own
from wordnet_splits.base.terminal.runner import run
from wordnet_splits.benchmark.construct import build_benchmark

pytestmark = pytest.mark.usefixtures("own_datasets_forgotten", "no_roots_of_this_machine")

CLASSES = ["golden retriever", "teapot", "zebra"]
RECIPE = """schema = 1
name = "mine"
[[source]]
name = "mypics"
layout = "folders"
catalog = "pics/mypics.tsv"
[[group]]
name = "known"
role = "id"
source = "mypics"
classes = { listed = ["golden retriever", "teapot"] }
images = { train = { from = "train", all = true }, test = { from = "test", all = true } }
[[group]]
name = "unknown"
role = "near"
source = "mypics"
classes = { rest = true }
images = { test = { from = "test", all = true } }
"""
HERE = ["--benchmark", "given/mine", "--root", "mypics=pics", "--device", "cpu"]


@pytest.mark.extensions("loaders.harness.training", "loaders.harness.report")
def test_train_run_and_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    own.class_folders(Path("pics"), CLASSES, {"train": 2, "test": 2})
    own.catalog(Path("pics/mypics.tsv"), CLASSES, {"train": 2, "test": 2})
    Path("mine.toml").write_text(RECIPE, "utf-8")
    build_benchmark("mine.toml", roots={"mypics": "pics"}, out=Path("given"))
    Path("pics/mypics.tsv").unlink()  # nothing but the manifest knows the dataset now

    def unknown_eval(*words: str) -> str:
        code = run(app, [*words], "unknown-eval")
        said = capsys.readouterr()
        assert code == 0, said.err
        return said.err

    short = ["--recipe", "digits-demo", "--seeds", "0", "--epochs", "1", "--threads", "1"]
    unknown_eval("train", *HERE, *short, "--out", "models")
    evaluated = ["run", *HERE, "--model", "trained:models/mine", "--detectors", "msp"]
    unknown_eval(*evaluated, "--out", "first")
    monkeypatch.setenv("WORDNET_SPLITS_MANIFESTS", "given")
    unknown_eval("report", "first", "--root", "mypics=pics", "--out", "page.html")
    assert "data:image/png" in Path("page.html").read_text("utf-8")

    # the same names, other pictures: nothing that was stored for the old ones may be taken for the new
    own.picture(999).save("pics/test/zebra/picture 0.png")
    own.catalog(Path("pics/mypics.tsv"), CLASSES, {"train": 2, "test": 2})
    shutil.rmtree("given")
    build_benchmark("mine.toml", roots={"mypics": "pics"}, out=Path("given"))
    unknown_eval(*evaluated, "--out", "second")
    first, second = (
        {(r["group"], r["image_id"]): r["msp/0"] for r in Results.read(name).scores.to_pylist()}
        for name in ("first", "second")
    )
    changed = [image_id for (group, image_id), value in first.items() if second[group, image_id] != value]
    assert changed == ["test/zebra/picture 0"]
