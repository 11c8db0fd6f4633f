"""Every shipped method passes the audit and equals its oracle; copies of public mistakes fail it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from loaders.harness.cli.main import app
from loaders.harness.training.audit import audit_method
from loaders.harness.training.methods import Method, list_methods
from loaders.harness.training.methods.registry import METHODS
from wordnet_splits.base.errors import DataError
from wordnet_splits.cli.main import run

from .oracles import embeddings, heads, images
from .planted_training import (
    BranchFault,
    FrozenTeacher,
    LearnedWeight,
    PointsFault,
    QueueFault,
    TargetFault,
    TeacherFault,
    ViewFault,
)
from .public_bugs import (
    BatchEntropyMcd,
    BatchMean,
    DeclaredBatchEntropy,
    DetachedVos,
    ForgettingNpos,
    HeadOfSetup,
    RateZero,
    TensorOfSetup,
    TwoViews,
    UnreadOutliers,
    UnscheduledGodin,
    UnusedHead,
    Weightless,
)
from .stand_ins import spec_of

ORACLES = {**vars(images), **vars(heads), **vars(embeddings)}


EDL = [f"edl[objective={o}, activation={a}]" for o in ("log", "digamma", "mse") for a in ("softplus", "relu")]


@pytest.mark.parametrize("name", [*list_methods(), *EDL])
def test_each_method_trains_what_it_claims_and_equals_its_formula(name: str, tmp_path: Path) -> None:
    oracle = ORACLES.get(f"of_{name.partition('[')[0].replace('-', '_')}")
    assert oracle is not None, f"write its formula in {images.__package__} from the paper"
    audit = audit_method(spec_of(name, tmp_path), oracle)
    assert audit.failures == ()
    checked = {finding.part for finding in audit.findings if finding.check == "oracle"}
    assert checked == {finding.part for finding in audit.findings if finding.check == "gradient"}


@pytest.mark.parametrize(
    ("broken", "repaired", "failure"),
    [
        (DetachedVos(), DetachedVos(detach=False), ("virtual", "gradient", "does not reach backbone")),
        (BatchEntropyMcd(), BatchEntropyMcd(dim=1), ("gap", "per image", "changing one image changes")),
        (ForgettingNpos(), ForgettingNpos(forget=False), ("(all)", "kept", "is emptied when an epoch ends")),
        (
            UnscheduledGodin(),
            UnscheduledGodin(aside=False),
            ("(all)", "trained", "the schedule does not reach"),
        ),
        (BatchMean(), None, ("cross_entropy", "per image", "one number for the batch")),
        (Weightless(), None, ("norm", "changes weights", "its weight in the loss is 0")),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Method) else "",
)
def test_public_mistakes_fail(broken: Method, repaired: Method | None, failure: tuple[str, str, str]) -> None:
    part, check, note = failure
    failures = audit_method(broken).failures
    assert any((f.part, f.check) == (part, check) and note in f.note for f in failures), failures
    if repaired is not None:
        assert audit_method(repaired).failures == ()


@pytest.mark.parametrize(
    ("planted", "repaired", "failure"),
    [
        (DeclaredBatchEntropy(), DeclaredBatchEntropy(dim=1), ("gap", "batch")),
        (HeadOfSetup(), None, ("(all)", "trained")),
        (TensorOfSetup(), None, ("(all)", "trained")),
        (RateZero(), None, ("(all)", "trained")),
        (UnusedHead(), None, ("(all)", "trained")),
        (TwoViews(same=True), TwoViews(), ("(all)", "inputs")),
        (TwoViews(first=True), None, ("(all)", "inputs")),
        (UnreadOutliers(), None, ("(all)", "inputs")),
    ],
    ids=lambda value: repr(value) if isinstance(value, Method) else "",
)
def test_planted_faults_fail(planted: Method, repaired: Method | None, failure: tuple[str, str]) -> None:
    assert failure in [(f.part, f.check) for f in audit_method(planted).failures]
    if repaired is not None:
        assert audit_method(repaired).failures == ()


@pytest.mark.parametrize(
    ("planted", "failure"),
    [
        (BranchFault("reset every epoch"), ("(all)", "trained")),
        (BranchFault("reset every step"), ("(all)", "trained")),
        (BranchFault("replaced every epoch"), ("(all)", "trained")),
        (BranchFault("evaluation mode"), ("(all)", "trained")),
        (BranchFault("frozen backbone"), ("cross_entropy", "gradient")),
        (BranchFault("negative rate"), ("(all)", "trained")),
        (BranchFault("gradient zeroed"), ("(all)", "trained")),
        (BranchFault("numpy"), ("(all)", "inputs")),
        (BranchFault("batch in place"), ("(all)", "inputs")),
        (BranchFault("module in state"), ("(all)", "kept")),
        (BranchFault("centred"), ("confidence", "per image")),
        (BranchFault("batch size"), ("confidence", "per image")),
        (TargetFault("shifted"), ("(all)", "falls")),
        (TargetFault("reversed"), ("(all)", "inputs")),
        (TargetFault("outliers last"), ("(all)", "inputs")),
        (TargetFault("confident"), ("(all)", "falls")),
        (TargetFault("negative"), ("(all)", "falls")),
        (TeacherFault("gradient"), ("(all)", "trained")),
        (TeacherFault("copied back"), ("(all)", "trained")),
        (FrozenTeacher(), ("(all)", "trained")),
        (QueueFault("unfilled"), ("(all)", "kept")),
        (QueueFault("unread"), ("(all)", "kept")),
        (QueueFault("position"), ("(all)", "kept")),
        (ViewFault("numpy"), ("(all)", "inputs")),
        (ViewFault("torch"), ("(all)", "inputs")),
        (ViewFault("in place"), ("(all)", "inputs")),
        (ViewFault("over batch"), ("contrast", "batch")),
        (PointsFault(), ("(all)", "trained")),
        (LearnedWeight(), ("(all)", "trained")),
    ],
    ids=lambda value: repr(value) if isinstance(value, Method) else "",
)
def test_faults_of_training_fail(planted: Method, failure: tuple[str, str]) -> None:
    assert failure in [(f.part, f.check) for f in audit_method(planted).failures]


@pytest.mark.filterwarnings("ignore:optimizer contains a parameter group with duplicate:UserWarning")
def test_a_parameter_held_twice_is_refused() -> None:
    try:
        failures = [(f.part, f.check) for f in audit_method(BranchFault("held twice")).failures]
    except DataError:  # by later versions of torch
        return
    assert ("(all)", "trained") in failures


@pytest.mark.parametrize(
    "right",
    [
        BranchFault(),
        TargetFault(),
        TeacherFault(),
        FrozenTeacher(fault=False),
        QueueFault(),
        ViewFault(),
        PointsFault(fault=False),
        LearnedWeight(fault=False),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_same_methods_without_a_fault_pass(right: Method) -> None:
    assert audit_method(right).failures == ()


@pytest.mark.parametrize(("fault", "check"), [("never", "kept"), ("backwards", "trained")])
def test_a_teacher_that_may_be_meant_is_not_called_checked(fault: Any, check: str) -> None:
    audit = audit_method(TeacherFault(fault))
    assert {f.check: f.passed for f in audit.findings if f.part == "(all)"}[check] is None


def test_what_depends_on_the_batch_is_not_called_checked_per_image() -> None:
    outcomes = {(f.part, f.check): f.passed for f in audit_method(TwoViews()).findings}
    assert outcomes["contrast", "per image"] is None
    assert outcomes["contrast", "batch"] is True
    assert outcomes["cross_entropy", "batch"] is None


def test_a_detached_regulariser_trains_plain_cross_entropy() -> None:
    failures = {(f.part, f.check): f.note for f in audit_method(DetachedVos()).failures}
    assert failures["(all)", "changes weights"] == "as with plain cross-entropy"


def test_an_oracle_that_differs_fails() -> None:
    audit = audit_method("softmax", lambda inputs: {"cross_entropy": inputs.labels * 0.5})
    assert [(f.check, "where the oracle has" in f.note) for f in audit.failures] == [("oracle", True)]


def test_the_command_prints_the_table_and_fails_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(app, ["audit-method", "logitnorm[tau=0.1]", "--json"], "unknown-eval") == 0
    assert json.loads(capsys.readouterr().out)["passed"] is True
    assert run(app, ["audit-method", "softmax"], "unknown-eval") == 0
    assert capsys.readouterr().out.split()[0] == "part"
    bug = f"{DetachedVos.__module__}:DetachedVos"
    assert run(app, ["audit-method", bug], "unknown-eval") == 1
    captured = capsys.readouterr()
    assert "FAIL" in captured.out
    assert "virtual, gradient: does not reach backbone, does not reach head" in captured.out
    assert run(app, ["audit-method", "logitnrm"], "unknown-eval") == 2
    message = "error: audit-method: unknown training method 'logitnrm'; did you mean 'logitnorm'"
    assert capsys.readouterr().err.startswith(message)


def test_a_part_that_is_not_a_number_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    spec = f"{DetachedVos.__module__}:NotANumber"
    assert run(app, ["audit-method", spec], "unknown-eval") == 2
    message = f"error: training method {spec!r}: the part 'cross_entropy' of its loss is nan\n"
    assert capsys.readouterr() == ("", message)


def test_the_page_names_every_method_with_its_parts() -> None:
    page = (Path(__file__).parents[5] / "docs" / "training-methods.md").read_text("utf-8")
    for name in list_methods():
        method = METHODS[name]
        assert f"| `{name}` |" in page
        (row,) = (line for line in page.splitlines() if line.startswith(f"| `{name}` |"))
        assert f"| {', '.join(method.parts)} | {', '.join(method.outputs)} |" in row


def test_several_methods_are_audited_in_one_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(app, ["audit-method", "softmax", "confbranch"], "unknown-eval") == 0
    table, _, _ = capsys.readouterr().out.partition("\nsoftmax, ")  # the notes follow
    assert re.findall(r"^(softmax|confbranch) ", table, re.M) == ["softmax"] * 2 + ["confbranch"] * 3
    for part in ("(all)", "cross_entropy", "task", "confidence"):
        assert part in table
    assert run(app, ["audit-method", "softmax", "confbranch", "--json"], "unknown-eval") == 0
    assert [row["method"] for row in json.loads(capsys.readouterr().out)["methods"]] == [
        "softmax",
        "confbranch",
    ]
