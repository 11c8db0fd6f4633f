"""``scores export`` and ``recompute``, as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from loaders.harness.cli.main import app
from tests.raising import mentions
from wordnet_splits.base.parquet import read_table
from wordnet_splits.base.terminal.runner import run

ENTRIES = Path(__file__).resolve().parents[4] / "manifests" / "results"
pytestmark = pytest.mark.skipif(not ENTRIES.exists(), reason="the committed results are not in this copy")
SMALL = str(ENTRIES / "unknown-cifar-tinyval-dropout")
WITHOUT = str(ENTRIES / "optimizers-fashion-small")


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def ran(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = run(app, list(words), "unknown-eval")
    return code, *capsys.readouterr()


def test_scores_are_exported_and_metrics_recomputed(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = ran(capsys, "scores", "export", SMALL, WITHOUT, "--json")
    assert code == 3  # an entry has no scores
    assert json.loads(out)["models"] == 1
    assert "optimizers-fashion-small: the entry has no scores of runs" in err
    code, out, err = ran(capsys, "scores", "export", SMALL)
    assert (code, out) == (2, "")
    assert "scores" in err
    code, out, err = ran(capsys, "recompute", "scores", "--metric", "fpr95_id_positive", "--json")
    assert code == 0
    rows = json.loads(out)["rows"]
    assert {row["metric"] for row in rows} == {"fpr95_id_positive"}
    images = read_table(Path("scores/unknown-cifar-tinyval/scores.parquet")).to_pylist()
    near = next(row["group"] for row in images if row["role"] == "near")
    lines = [f"{row['source']},{row['image_id']}" for row in images if row["group"] in ("cifar-40", near)]
    Path("list.csv").write_text("\n".join(["source,image_id", *lines[::7]]), encoding="utf-8")
    code, out, err = ran(capsys, "recompute", "scores", "--subset", "list.csv", "--out", "a.csv")
    assert (code, out) == (0, "")
    assert "the subset has no image of" in err
    assert f"images of {near}" in err
    assert Path("a.csv").read_text("utf-8").startswith("benchmark,model,run,detector,group,role,metric,value")
    code, out, err = ran(capsys, "recompute", "scores", "--subset", "list.csv")
    assert near in out


def test_what_cannot_be_used_is_refused_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    for words, message in (
        (("scores", "export", WITHOUT), "scores"),
        (("scores", "export", "nowhere"), "about.json"),
        (("recompute", "nowhere"), "nowhere"),
        (("recompute", "nowhere", "--metric", "aurok"), "aurok"),
        (("recompute", "nowhere", "--out", "x.txt"), ()),
    ):
        code, out, err = ran(capsys, *words)
        assert (code, out) == (2, ""), words
        assert mentions(err, message)
        assert err.count("\n") == 1
