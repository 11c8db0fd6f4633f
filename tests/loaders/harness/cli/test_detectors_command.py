"""``list detectors``: a pattern that finds nothing is an error; presets stand below all of them."""

from __future__ import annotations

import pytest

from loaders.harness.cli.main import app
from tests.raising import mentions
from wordnet_splits.base.terminal.runner import run


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_name_of_none_is_an_error(more: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(app, ["list", "detectors", "openmx", *more], "unknown-eval") == 2
    said = capsys.readouterr()
    assert mentions(said.out + said.err, "openmx")
    assert "openmax" in said.out + said.err


@pytest.mark.parametrize(("pattern", "shown"), [("*", True), ("kn*", False), ("knn", False)])
def test_presets_stand_below_the_whole_list_alone(
    pattern: str, shown: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(app, ["list", "detectors", pattern], "unknown-eval") == 0
    out = capsys.readouterr().out
    assert out.startswith("detector ")
    assert ("\npreset " in out) is shown
