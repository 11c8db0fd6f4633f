"""The measure of `make proposals`, on the datasets that are quick to read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tools.proposals.fitting import KIN, answered, fit, outcomes
from tools.proposals.measure import SETS, held_out, reliability, reliability_table, score, score_table
from wordnet_splits.datasets.catalog import load_catalog
from wordnet_splits.linking import propose_synsets
from wordnet_splits.linking.weights import Model

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def unseen():
    """Return the scores of all datasets, each held out from the fit."""
    return held_out([answered(source) for source in SETS])


def test_names_of_datasets_held_out_are_read_as_well_as_wanted(unseen):
    assert np.mean([s.first for s in unseen]) >= 0.90
    assert np.mean([s.five for s in unseen]) >= 0.97
    assert np.mean([s.unasked_right for s in unseen]) >= 0.97


def test_the_page_has_the_tables_that_the_command_prints(unseen):
    page = (ROOT / "docs" / "evidence" / "linking.md").read_text(encoding="utf-8")
    head, _, *rows = score_table(unseen)
    printed = page.split(head + "\n")[1].split("\n")[1 : len(rows) + 1]
    assert [_label(row) for row in printed] == [_label(row) for row in rows]
    # another SciPy may fit slightly different weights and move a name or two
    differences = [_figures(a) - _figures(b) for a, b in zip(printed, rows, strict=True)]
    assert np.abs(np.array(differences)).max() < 3
    assert reliability_table(unseen)[0] in page


def _label(row):
    return row.split("|")[1:3]


def _figures(row):
    return np.array([float(cell) for cell in row.split("|")[3:-1]])


@pytest.fixture(scope="module")
def cifar100():
    return answered("cifar100")


def test_a_fit_on_two_other_datasets_reads_cifar100(cifar100):
    found = score(fit([answered("food101"), answered("caltech256")]), cifar100)
    assert found.first >= 0.85
    assert found.five >= 0.97
    assert found.unasked_right >= 0.95


def test_the_shipped_model_reads_tiny_imagenet_which_it_was_not_fitted_on():
    assert "tiny-imagenet" not in SETS
    found = score(Model.shipped(), answered("tiny-imagenet"))
    assert found.first >= 0.9
    assert found.five >= 0.97
    assert found.unasked_right >= 0.97
    assert found.asked <= 0.3


def test_ranks_are_those_of_the_proposals(cifar100):
    model = Model.shipped()
    ranks, alone, together = outcomes(model, cifar100)
    proposals = propose_synsets(cifar100.names).proposals
    catalog = load_catalog("cifar100")
    right = [float(p.wnid in c.wnids) for p, c in zip(proposals, catalog, strict=True)]
    assert (ranks == 0).astype(float).tolist() == right
    confidence = model.confidence(cifar100.reading.pool, alone, together)
    assert [p.confidence for p in proposals] == pytest.approx(confidence.tolist())


def test_no_synset_is_right_only_where_none_is_proposed():
    source = answered("caltech256")
    ranks, _, _ = outcomes(Model.shipped(), source)
    at = source.names.index("breadmaker")
    assert source.answers[at] == frozenset()
    assert ranks[at] == np.inf  # a form of "bread maker" is proposed


def test_kin_are_held_out_together():
    a, b = load_catalog("places365"), load_catalog("sun397")
    shared = {c.name for c in a} & {c.name for c in b}
    assert len(shared) > 200
    assert KIN["places365"] == KIN["sun397"]


def test_the_reliability_table_counts_every_name_once(cifar100):
    found = score(Model.shipped(), cifar100)
    rows = reliability([found], (0.0, 0.5, 0.9, 1.0))
    assert sum(count for _, _, count, _, _ in rows) == 100
    assert sum(count * right for _, _, count, _, right in rows) / 100 == pytest.approx(found.first)
