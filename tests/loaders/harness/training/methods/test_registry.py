"""Parameters of training methods: every number has a range, and values out of it are refused."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import Field

from loaders.harness.cli.main import app
from loaders.harness.plugins import ranges_of
from loaders.harness.training.methods import Batch, Method, Network, State, get_method, list_methods
from loaders.harness.training.methods.classification import LogitNorm
from loaders.harness.training.methods.interface import Terms
from loaders.harness.training.methods.registry import PAPER_NAMES
from tests.raising import mentions, raises
from wordnet_splits.base.errors import DataError, UnknownNameError
from wordnet_splits.cli.main import run


def numbers() -> list[tuple[str, str, float]]:
    """Name of each method with the name and default of its numeric parameters."""
    return [
        (name, item.name, item.default)
        for name in list_methods()
        for item in dataclasses.fields(get_method(name))
        if isinstance(item.default, int | float) and not isinstance(item.default, bool)
    ]


def test_the_names_of_papers_are_those_of_no_method_and_suggest_one() -> None:
    assert set(PAPER_NAMES).isdisjoint(list_methods())
    assert set(PAPER_NAMES.values()) <= set(list_methods())


def test_every_numeric_parameter_has_a_range() -> None:
    without = [(name, key) for name, key, _ in numbers() if key not in ranges_of(type(get_method(name)))]
    assert without == []
    unbounded = {(name, key) for name, key, _ in numbers() if not ranges_of(type(get_method(name)))[key]}
    assert unbounded == {("energy", "m_in"), ("energy", "m_out")}


def test_bounds_are_enforced_and_numbers_within_them_are_not() -> None:
    for name, key, default in numbers():
        assert getattr(get_method(name, {key: default}), key) == default
        for value in (math.nan, math.inf, -math.inf, True, None, "true"):
            with raises(DataError, naming=(name, key)):
                get_method(name, {key: value})
        for kind, bound in ranges_of(type(get_method(name)))[key]:
            step = 1 if isinstance(default, int) else 1e-9
            outside, inside = {
                "gt": (bound, bound + step),
                "ge": (bound - step, bound),
                "lt": (bound, bound - step),
                "le": (bound + step, bound),
            }[kind]
            assert getattr(get_method(name, {key: inside}), key) == inside
            with raises(DataError, naming=(name, key)):
                get_method(name, {key: outside})


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (
            "confbranch[budget=1.5]",
            "1.5",
        ),
        ("logitnorm[tau=0]", ()),
        ("logitnorm[tau=nan]", ()),
        ("energy[m_in=-inf]", "m_in"),
        ("vos[draws=2.5]", "2.5"),
        ("oe", ("oe", "outlier-exposure")),
        ("eos", ("eos", "entropic-open-set")),
        ("BG", ("BG", "background")),
        ("ce", ("ce", "softmax")),
        ("logitnorm[tau=1,tau=2]", "tau"),
        (f"vos[draws=-{10**400}]", ()),
    ],
)
@pytest.mark.parametrize("command", ["train", "audit-method"])
def test_mistakes_are_one_line_before_anything_else(
    command: str, method: str, message: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    training = [
        "--benchmark",
        "digits",
        "--recipe",
        "digits-demo",
        "--out",
        str(tmp_path),
        "--method",
        method,
    ]
    assert run(app, [command, *(training if command == "train" else [method])], "unknown-eval") == 2
    out, error = capsys.readouterr()
    assert error.startswith("error: ")
    assert mentions(error, message)
    assert (len(error.splitlines()), out) == (1, "")


def test_a_method_that_is_built_directly_is_checked_too() -> None:
    with raises(DataError, where="LogitNorm: tau"):
        LogitNorm(tau=0)


@pytest.mark.parametrize("value", [2.5, math.inf])
def test_integers_are_not_cut_off(value: float) -> None:
    with raises(DataError, where="training method: vos: draws"):
        get_method("vos", {"draws": value})


@dataclasses.dataclass(frozen=True)
class OfAUser(Method):
    """A method with bounds of its own, and a parameter without."""

    share: Annotated[float, Field(gt=0, le=0.5)] = 0.5
    free: float = 0.0

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        raise NotImplementedError


def test_users_declare_ranges_in_the_same_way() -> None:
    method: Any = get_method(f"{__name__}:OfAUser[share=0.25,free=-3]")
    assert (method.share, method.free) == (0.25, -3)
    for text in ("share=0.75", "free=nan"):
        with pytest.raises(DataError):
            get_method(f"{__name__}:OfAUser[{text}]")
    with raises(
        UnknownNameError, where="tests.loaders.harness.training.methods.test_registry:OfAUser", near="share"
    ):
        get_method(f"{__name__}:OfAUser[shar=0.75]")


@dataclasses.dataclass(frozen=True)
class DerivedFromLogitNorm(LogitNorm):
    """A method that changes one of ours."""


def test_a_method_that_derives_from_another_has_a_name_of_its_own() -> None:
    assert get_method(f"{__name__}:DerivedFromLogitNorm").name == f"{__name__}:DerivedFromLogitNorm"
    assert get_method(f"{LogitNorm.__module__}:LogitNorm").name == get_method("logitnorm").name == "logitnorm"
