"""The blocks of the pages on evaluation run as they stand, one after the other."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from types import ModuleType

import pytest

from loaders.harness.cli.main import app
from loaders.harness.detectors import DETECTORS
from tests.selection import cases
from tests.wordnet_splits.command import assert_printed, blocks_of, run

pytestmark = pytest.mark.extensions(
    "loaders.harness.training",
    "loaders.harness.comparison",
    "loaders.harness.deployment",
    "loaders.harness.report",
    "loaders.harness.leaderboard",
    "loaders.harness.hierarchy",
)

DOCS = Path(__file__).resolve().parents[3] / "docs"
SHOWN = {
    "evaluation.md": (
        "Model seeds: mean over 2 runs",
        "True images compared with digits",
        "mapping='given'",
        "youden on near",
        "ece_equal_mass 0.",
        "no normalisation of its inputs is stated by the model or digits",
        "Model onnx: weights net.onnx",
        "Model my_models:linear: weights my_models:linear",
        "uniform: 3 of 500 images have no row: uniform/8x8x1/s0/00000",
        "Model mine: weights as given in arrays",
    ),
    "training-methods.md": ("120 of the ID train images",),
    "detectors.md": ("names of 2 of the 4 classes",),
    "coming-from.md": ("openood.nearestmean", "by the protocol of OpenOOD", "pytorch_ood.vim[d=16]"),
    "results.md": (
        "digits: auroc on near, in %, higher is better",
        "Table 5: digits-6-9: robustness of detectors over models",
        "('adam mcp', ",
        "\\caption{OpenOOD v1.5, tables 1 to 3, in \\%",
        "entries that may be best",
        "chance on fresh classes 0.",
        "report.html",
        "spearman",
        "fpr95_id_positive",
    ),
    "hierarchy.md": ("a digit, 100%; which of the 6 is open", "accuracy at depth", "['dog']"),
    "one-image.md": ("ShippedDetector(knn on Sequential: 4.96% false alarms at most", "photos/b.png"),
}
SHELL = ("hierarchy.md", "evaluation.md")
"""Pages whose commands run too."""


@pytest.mark.docs
@pytest.mark.usefixtures("user_metrics_forgotten")
@pytest.mark.parametrize("name", cases(SHOWN, always="evaluation.md"))
def test_the_page_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if name == "evaluation.md":
        for package in ("onnx", "onnxruntime", "onnxscript"):
            pytest.importorskip(package, reason="pip install '.[dev]'")
    monkeypatch.chdir(tmp_path)
    session = ModuleType("page")  # classes of a notebook can be imported again, too
    monkeypatch.setitem(sys.modules, "page", session)
    page = (DOCS / name).read_text(encoding="utf-8")
    printed = ""
    for language, block, said in blocks_of(page):
        if language == "python":
            exec(compile(block, name, "exec", dont_inherit=True), vars(session))
        elif name in SHELL:
            for line in block.splitlines():
                assert run(app, shlex.split(line)[1:], "unknown-eval") == 0, line
        out = capsys.readouterr().out
        assert_printed(said, out)
        printed += out
    for text in SHOWN[name]:
        assert text in printed


def test_the_pages_list_every_detector() -> None:
    page = (DOCS / "detectors.md").read_text(encoding="utf-8")
    table = page.partition("| computed from |")[2].partition("\n\n")[0]
    listed = set(re.findall(r"`(\w+)`", table))
    assert listed >= set(DETECTORS)
    assert listed <= {
        name for method in DETECTORS.registered.values() for name in (method.name, *method.aliases)
    }
    with_paper = sum(detector.paper is not None for detector in DETECTORS.registered.values())
    assert f"{len(DETECTORS)} detectors, {with_paper} with their papers" in page
