"""Parameters of training methods: every number has a range, and values out of it are refused."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import Field

from loaders.harness.cli.main import app
from loaders.harness.training.methods import Batch, Method, Network, State, get_method, list_methods
from loaders.harness.training.methods.classification import LogitNorm
from loaders.harness.training.methods.interface import Terms
from loaders.harness.training.methods.registry import PAPER_NAMES
from tests.raising import raises
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


def test_every_number_is_finite_and_of_its_type() -> None:
    for name, key, default in numbers():
        assert getattr(get_method(name, {key: default}), key) == default
        for value in (math.nan, math.inf, -math.inf, True, None, "true"):
            with pytest.raises(DataError) as refused:
                get_method(name, {key: value})
            assert str(refused.value.where).endswith(f"{name}: {key}")


@pytest.mark.parametrize(
    ("method", "inside", "outside"),
    [
        ("confbranch[budget={}]", (1, 0.5), (0, 1.5)),
        ("logitnorm[tau={}]", (1e-9,), (0, -1)),
        ("vos[draws={}]", (1,), (0, -1)),
    ],
)
def test_bounds_are_enforced_and_numbers_within_them_are_not(method: str, inside: Any, outside: Any) -> None:
    for value in inside:
        get_method(method.format(value))
    for value in outside:
        with pytest.raises(DataError):
            get_method(method.format(value))


@pytest.mark.parametrize(
    ("method", "named"),
    [
        ("confbranch[budget=1.5]", "confbranch: budget"),
        ("logitnorm[tau=nan]", "logitnorm: tau"),
        ("energy[m_in=-inf]", "energy: m_in"),
        ("vos[draws=2.5]", "vos: draws"),
        ("oe", "outlier-exposure"),
        ("eos", "entropic-open-set"),
        ("BG", "background"),
        ("ce", "softmax"),
        ("logitnorm[tau=1,tau=2]", "tau"),
        (f"vos[draws=-{10**400}]", "vos: draws"),
    ],
)
@pytest.mark.parametrize("command", ["train", "audit-method"])
def test_mistakes_are_one_line_before_anything_else(
    command: str, method: str, named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
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
    assert named in error
    assert (len(error.splitlines()), out) == (1, "")


def test_names_that_are_not_methods_are_refused() -> None:
    with raises(UnknownNameError, where="training method", naming="logitnrm", near="logitnorm"):
        get_method("logitnrm")
    with raises(DataError, where="JSONDecoder"):
        get_method("json:JSONDecoder")


def test_a_method_that_is_built_directly_is_checked_too() -> None:
    with pytest.raises(DataError) as refused:
        LogitNorm(tau=0)
    assert refused.value.where == "LogitNorm: tau"


@pytest.mark.parametrize("value", [2.5, math.inf])
def test_integers_are_not_cut_off(value: float) -> None:
    with pytest.raises(DataError):
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
