"""``unknown-eval compare``, ``plot`` and ``report``: one JSON object, one line an error, and no torch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from loaders.harness.cli.main import app
from loaders.harness.evaluation.run_evaluation import evaluate_runs
from loaders.harness.results.printing import split_labels
from tests.loaders.harness.absent_torch import BLOCKED
from tests.loaders.harness.evaluation.fake_runs import fake_run
from tests.raising import mentions
from tests.wordnet_splits.command import environment
from wordnet_splits.base.terminal.runner import run
from wordnet_splits.benchmark.resolve import load_manifest

pytestmark = pytest.mark.extensions("loaders.harness.comparison", "loaders.harness.report")

EACH = """
import json
from loaders.harness.cli.main import main

def code(words):
    sys.argv[1:] = words
    try:
        return main() or 0
    except SystemExit as ended:
        return ended.code or 0

print("ends:", [code(words) for words in json.loads(sys.argv[1])])
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("evaluated")
    manifest = load_manifest("digits")
    runs = [fake_run(manifest, seed, splits=("train", "test")) for seed in (0, 1)]
    evaluate_runs(manifest, runs, "mcp,knn[k=10]").write(place / "results")
    return place


@pytest.fixture
def call(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(folder)

    def called(*words: str) -> tuple[int, str, str]:
        code = run(app, list(words), "unknown-eval")
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return called


def test_compare_prints_tables_or_one_object(call: Any) -> None:
    code, out, err = call("compare", "results", "--bootstrap", "5")
    assert (code, err) == (0, "")
    assert out.startswith("digits, fake: aurc_unknown on pooled x 1000, lower is better\n")
    code, out, _ = call("compare", "results", "--detectors", "mcp,knn[k=10]", "--on", "near", "--json")
    assert code == 0
    found = json.loads(out)
    assert {row["detector"] for row in found["ranking"]} == {"mcp", "knn[k=10]"}
    assert found["on"] == "near"


def test_nearness_prints_tables_or_one_object(call: Any) -> None:
    committed = str(
        Path(__file__).resolve().parents[4] / "manifests/results/unknown-cifar-tinyval-resnet20-short"
    )
    words = ("nearness", committed, "--detectors", "mcp,energy", "--group", "cifar-60", "--bootstrap", "5")
    code, out, err = call(*words)
    assert (code, err) == (0, "")
    assert "Negative: nearer classes are harder to detect." in out
    code, out, err = call(*words, "--json")
    assert code == 0
    assert {row["detector"] for row in json.loads(out)["correlations"]} == {"mcp", "energy"}
    assert "note: Over 60 classes of cifar-60." in err
    code, _, err = call("nearness", committed, "--group", "gaussian")
    assert (code, len(err.splitlines())) == (2, 1)
    code, out, _ = call("nearness", "results", "--bootstrap", "2")  # all of digits' OOD classes are as near
    assert (code, "NaN" in out) == (0, False)


def test_every_number_is_printed_on_a_narrow_terminal(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loaders.harness.results.printing.terminal_width", lambda: 60)
    _, out, _ = call("compare", "results", "--bootstrap", "5")
    assert max(map(len, out.splitlines())) <= 60  # titles and notes, too
    lines = out.partition("\n\n")[0].splitlines()
    header = " ".join(line for line in lines if "model" in line or "detector" in line)
    assert all(name in header for name in ("runs", "mean", "interval", "ranks", "behind best"))


def test_plots_are_listed_and_drawn(call: Any) -> None:
    code, out, _ = call("plot", "--what", "list", "--json")
    names = {row["name"] for row in json.loads(out)["plots"]}
    assert code == 0
    assert {"roc", "oscr", "kim-5", "kim-6", "kim-7", "palechor-3", "palechor-4", "recalcati-4"} <= names
    code, out, err = call("plot", "results", "--what", "densities", "--detectors", "mcp", "--json")
    assert (code, json.loads(out)["out"], err) == (0, "densities.svg", "densities in densities.svg\n")
    assert call("plot", "results", "--what", "recalcati-4")[0] == 0
    assert Path("recalcati-4.graphml").read_bytes().startswith(b"<?xml")


def test_report_is_written(call: Any) -> None:
    code, out, err = call("report", "results", "--out", "page.html", "--mistakes", "1", "--json")
    assert (code, err) == (0, "report in page.html\n")
    assert json.loads(out)["bytes"] == Path("page.html").stat().st_size


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("compare", "nowhere"), ("nowhere", "about.json")),
        (("compare", "results", "--metric", "auroq"), ("auroq", "auroc")),
        (("compare", "results", "--robustness", "4,x"), ("4,x", "4,5,10")),
        (("compare", "results", "results"), ()),
        (("plot", "--what", "roc"), ("plot", "results")),
        (("plot", "results", "--what", "rock"), ("rock", "roc", "plot")),
        (("plot", "results", "--what", "roc", "--out", "a.gif"), ("a.gif", "plot")),
        (
            ("plot", "results", "--what", "roc", "--out", "results/scores.parquet/a.svg"),
            "results/scores.parquet",
        ),
        (("report", "results", "--out", "results"), "results"),
    ],
)
def test_errors_are_one_line(call: Any, words: tuple[str, ...], message: object) -> None:
    code, out, err = call(*words)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert mentions(err, message)
    assert err.count("\n") == 1


def test_commas_inside_brackets_do_not_part_detectors() -> None:
    assert split_labels("mcp, odin[T=10,eps=0.002],knn[k=5]") == ["mcp", "odin[T=10,eps=0.002]", "knn[k=5]"]
    assert split_labels(None) is None


def test_nothing_of_it_needs_torch(folder: Path, tmp_path: Path) -> None:
    commands = [
        ["compare", str(folder / "results"), "--bootstrap", "3"],
        ["plot", str(folder / "results"), "--what", "roc", "--out", str(tmp_path / "a.svg")],
        ["report", str(folder / "results"), "--out", str(tmp_path / "a.html")],
    ]
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED + EACH, json.dumps(commands)],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("ends: [0, 0, 0]\n"), done.stderr
    assert "torch is not installed" in (tmp_path / "a.html").read_text(encoding="utf-8")
