"""How far each set lies from ID: the figures of the class table, by other means."""

from __future__ import annotations

import math
import statistics
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from sklearn.metrics import roc_auc_score

from tests.raising import mentions, raises
from tests.wordnet_splits.command import Command
from wordnet_splits.base.errors import OutputError, UnknownNameError
from wordnet_splits.benchmark.recipe import FLAGSHIPS
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.studies.distances import distance

NAME = "unknown-cifar"


@pytest.fixture(scope="module")
def classes():
    return load_manifest(NAME).classes.to_pylist()


@pytest.mark.parametrize("measure", ["distance", "mean"])
def test_each_set_is_summed_up_as_its_classes_say(classes, measure):
    found = distance(NAME, measure=measure)
    assert [(s.group, s.role) for s in found.sets] == [
        ("tin158", "external"),
        ("cifar-60", "near"),
        *((name, "far") for name in ("lsun", "svhn", "dtd", "gaussian")),
    ]
    for one in found.sets:
        values = [row[measure] for row in classes if row["group"] == one.group]
        known = sorted(v for v in values if v is not None)
        assert (one.classes, one.unmapped) == (len(values), len(values) - len(known))
        if known:
            quartiles = statistics.quantiles(known, n=4, method="inclusive")
            assert (one.min, one.max) == (known[0], known[-1])
            assert [one.q1, one.median, one.q3] == pytest.approx(quartiles)
    noise = found.sets[-1]
    assert (noise.classes, noise.unmapped, noise.min, noise.max) == (1, 1, None, None)


@pytest.mark.parametrize("name", FLAGSHIPS)
def test_near_against_far_is_said_openly(name):
    rows = [r for r in load_manifest(name).classes.to_pylist() if r["role"] in ("near", "far")]
    near = [r["role"] == "near" for r in rows if r["mean"] is not None]
    found = distance(name)
    for measure, sign in (("mean", 1), ("wup", 1), ("distance", -1)):
        scores = [sign * r[measure] for r in rows if r[measure] is not None]
        assert found.near_against_far[measure] == pytest.approx(roc_auc_score(near, scores))
    assert round(found.near_against_far["mean"], 3) == 0.914


def test_a_ladder_is_in_order_and_one_side_alone_has_no_auroc():
    ladder = distance("rungs-imagenet", measure="mean")
    ends = [(one.min, one.max) for one in ladder.sets]
    assert all(upper[0] > lower[1] for upper, lower in pairwise(ends))
    assert ladder.near_against_far["mean"] == 1
    assert math.isnan(distance("osc-p1").near_against_far["mean"])


def test_the_command_and_its_plot(capsys, monkeypatch, tmp_path):
    command = Command(capsys, monkeypatch, tmp_path)
    done = command("distance", NAME, "--json")
    keys = ["group", "role", "classes", "unmapped", "min", "q1", "median", "q3", "max"]
    assert [list(row) for row in done.json["sets"]] == [keys] * 6
    assert done.json["near_against_far"]["mean"] == pytest.approx(0.914, abs=5e-4)
    pytest.importorskip("matplotlib")
    shown = command("distance", NAME, "--plot", tmp_path / "a.svg")
    assert shown.code == 0
    assert "mean 0.914" in shown.out
    distance(NAME).plot(tmp_path / "b.svg")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert ElementTree.parse(tmp_path / "a.svg").getroot().tag.endswith("svg")


def test_bad_input_is_refused(capsys, monkeypatch, tmp_path):
    with raises(UnknownNameError, naming="wupp"):
        distance(NAME, measure="wupp")
    with raises(OutputError, where="plot.gif"):
        distance("digits").plot(tmp_path / "plot.gif")
    command = Command(capsys, monkeypatch, tmp_path)
    assert mentions(command("distance", "unknown-cifr").error, "unknown-cifr")
