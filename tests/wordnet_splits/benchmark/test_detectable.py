"""What a benchmark can show: counts from the manifest, variances from the table, one line on bad input."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from importlib.resources import files

import numpy as np
import pytest
from scipy.stats import nct
from scipy.stats import t as student

import wordnet_splits as ws
from tests.raising import raises
from tests.wordnet_splits.command import Command
from wordnet_splits.base.errors import DataError, UnknownNameError
from wordnet_splits.benchmark.detectable import figure

TABLE = tomllib.loads((files("wordnet_splits") / "data" / "power.toml").read_text("utf-8"))


def test_a_measured_set_has_its_own_variances() -> None:
    row = ws.power("rungs-cifar100").sets[0]
    assert (row.group, row.role, row.classes, row.images) == ("rung-1", "near", 15, 1500)
    (entry,) = (e for e in TABLE["measured"] if e["group"] == "rung-1")
    assert [row.images, row.classes, row.subtrees] == entry["origin"]["sizes"]
    subtrees, classes, images, id_images = entry["auroc"]
    of_ood, of_id = 0.8 * 0.2**2 / 1.2, 0.8**2 * 0.2 / 1.8
    variance = of_ood * ((subtrees + classes) / 15 + images / 1500) + of_id * id_images / 4000
    critical = student.ppf(0.975, 14)
    assert nct.sf(critical, 14, row.auroc["classes"] / np.sqrt(variance)) == pytest.approx(0.8, abs=1e-4)
    assert row.auroc["images"] < row.auroc["classes"] < row.auroc["subtrees"]
    assert row.needed > 15


def test_a_single_class_is_judged_from_images_only() -> None:
    result = ws.power("digits")
    noise = [row for row in result.sets if row.classes == 1]
    assert [row.group for row in noise] == ["gaussian", "uniform"]
    assert all(row.auroc["classes"] is None and row.needed is None for row in noise)
    assert all(row.auroc["images"] is not None for row in noise)
    assert any("gaussian, uniform" in note for note in result.notes)


def test_classes_without_a_synset_have_no_subtrees() -> None:
    result = ws.power("openood-cifar100")
    (textures,) = (row for row in result.sets if row.group == "textures")
    assert (textures.classes, textures.subtrees, textures.auroc["subtrees"]) == (47, 1, None)
    assert any("textures" in note for note in result.notes)


def test_means_stand_for_several_sets_and_rows_are_flat() -> None:
    result = ws.power("openood-cifar100")
    near = result.sets[-2]
    assert (near.group, near.role, near.classes) == ("(mean)", "near", 143)
    assert result.rows()[-2]["auroc_classes"] == near.auroc["classes"]
    (cifar10,) = (row for row in result.sets if row.group == "cifar10")
    assert near.auroc["classes"] < cifar10.auroc["classes"]


def test_differences_shrink_towards_an_auroc_of_one() -> None:
    values = [ws.power("digits", auroc=a).sets[0].auroc["classes"] for a in (0.6, 0.8, 0.95)]
    assert values == sorted(values, reverse=True)


def test_a_gap_that_no_two_detectors_have_is_not_proposed() -> None:
    whole = ws.power("digits", auroc=0.8)
    gaps = {}
    for smallest in (0.39, 0.41):  # AUROCs of mean .8 are at most .6 and 1 apart
        row = replace(whole.summary, auroc={"classes": smallest})
        gaps[smallest] = replace(whole, sets=(row,)).sentence()
    assert ".39" in gaps[0.39]
    assert ".41" not in gaps[0.41]


@pytest.mark.parametrize(
    ("arguments", "where"),
    [({"auroc": 1.0}, "auroc"), ({"auroc": 0.5}, "auroc"), ({"difference": 0.0}, "difference")],
)
def test_values_out_of_range_are_refused(arguments: dict[str, float], where: str) -> None:
    with raises(DataError, where=where):
        ws.power("digits", **arguments)
    with raises(UnknownNameError):
        ws.power("digit")


def test_the_command_prints_the_same(command: Command) -> None:
    result = command("power", "rungs-cifar100", "--auroc", ".9", "--difference", ".01", "--json").json
    assert result == ws.power("rungs-cifar100", auroc=0.9, difference=0.01).as_dict()
    shown = command("power", "openood-imagenet1k")
    table = shown.out.partition("\n\n")[0].splitlines()
    assert max(map(len, table)) <= 80
    assert len(table) == 2 + 3 * len(ws.power("openood-imagenet1k").sets)
    assert ws.power("openood-imagenet1k").sentence() in shown.out
    assert "classes for 0.02" in table[0]
    assert "auroc" in command("power", "digits", "--auroc", "1").error


def test_figures_have_two_digits() -> None:
    assert [figure(v) for v in (None, 0.0123, 0.0996, 0.5, 1.2)] == ["-", ".012", ".10", ".50", "none"]
