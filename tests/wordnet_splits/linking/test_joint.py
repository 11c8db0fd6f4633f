"""The votes, counted candidate by candidate and pair by pair, are those of the arrays."""

from __future__ import annotations

import math

import numpy as np
import pytest

from wordnet_splits.linking import propose_synsets
from wordnet_splits.linking.graphs import Graphs
from wordnet_splits.linking.joint_reading import JOINT, read_names
from wordnet_splits.linking.weights import Model
from wordnet_splits.wordnet.taxonomy import Taxonomy

NAMES = ["seal", "dolphin", "whale", "seal/harbor", "crane", "desk globe"]


@pytest.fixture(scope="module")
def counted():
    taxonomy = Taxonomy.embedded()
    reading = read_names(NAMES, [""] * len(NAMES), taxonomy)
    alone, _ = Model.shipped().shares(reading)
    return taxonomy, reading.pool, alone, reading.joint(alone)


def naive(taxonomy, pool, shares, candidate):
    """Density, mean likeness and category votes of one candidate, other candidate by other candidate."""
    graphs = Graphs(taxonomy)
    group = pool.group[pool.owner]
    members = np.bincount(pool.group)
    own = set(taxonomy.graph.ancestors(int(pool.node[candidate])))
    groups = len(members) - 1
    density, alike = 1 / len(taxonomy), 0.0
    for other in range(len(pool.owner)):
        if group[other] == group[candidate]:
            continue
        vote = shares[other] / members[group[other]] / groups
        for node in own & set(taxonomy.graph.ancestors(int(pool.node[other]))):
            parents = taxonomy.graph.parents(node)
            base = np.mean([graphs.information[p] for p in parents]) if parents else 0.0
            density += vote / graphs.size[node]
            alike += vote * (graphs.information[node] - base)
    return math.log(density), alike


def test_votes_are_those_of_all_pairs(counted):
    taxonomy, pool, shares, table = counted
    for candidate in range(0, len(pool.owner), 3):
        density, alike = naive(taxonomy, pool, shares, candidate)
        assert table[candidate, JOINT.index("density")] == pytest.approx(density)
        assert table[candidate, JOINT.index("alike")] == pytest.approx(alike)


def test_every_name_gives_one_vote(counted):
    _, pool, shares, _ = counted
    assert np.bincount(pool.owner, shares) == pytest.approx(np.ones(len(NAMES)))


def test_sizes_add_up_to_all_synsets():
    taxonomy = Taxonomy.embedded()
    assert Graphs(taxonomy).size[taxonomy.index(taxonomy.root)] == pytest.approx(len(taxonomy))


DEVICES = ("keyboard", "monitor", "printer", "scanner", "laptop", "desk", "stapler", "webcam", "headset")


@pytest.mark.parametrize(
    ("name", "others", "synset"),
    [
        ("mouse", (*DEVICES, "projector"), "mouse.n.04"),
        ("mouse", ("cat", "dog", "rabbit", "hamster"), "mouse.n.01"),
        ("router", (*DEVICES, "projector"), "router.n.02"),
        ("router", ("drill", "sander", "chisel", "lathe", "screwdriver"), "router.n.03"),
        ("slide", ("microscope", "beaker", "pipette", "test tube", "centrifuge", "petri dish"), "slide.n.01"),
        ("slide", ("swing", "seesaw", "jungle gym", "trampoline", "climbing frame"), "slide.n.04"),
        ("crane", ("heron", "stork", "flamingo", "pelican"), "crane.n.05"),
        ("crane", ("bulldozer", "excavator", "forklift", "dump truck"), "crane.n.04"),
    ],
)
def test_a_few_other_names_are_enough_to_decide_between_senses(name, others, synset):
    proposals = propose_synsets([name, *others])
    assert proposals.rows()[0]["synset"] == synset
