"""The graph: parents, depths, chains, the tree projection, and what bad input gets."""

from __future__ import annotations

import gc
import pickle
import subprocess
import sys
import weakref
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.raising import raises
from tools.facts.published import Published
from tools.facts.tree import lines
from wordnet_splits.base.errors import TaxonomyError
from wordnet_splits.datasets.catalog import load_catalog
from wordnet_splits.wordnet.similarity import pairs as similarity
from wordnet_splits.wordnet.taxonomy import Taxonomy
from wordnet_splits.wordnet.taxonomy import synsets as taxonomy
from wordnet_splits.wordnet.taxonomy.graph import TREE_CHOICES, imagenet_choices

from ...frozen_answers import digest_of
from ...toy import TOY
from ..similarity.test_similarity_nltk import hashed, synset

DOG, CAT = "n02084071", "n02121620"
EMBEDDED = Taxonomy.embedded()
nouns = st.integers(0, len(EMBEDDED) - 1).map(EMBEDDED.wnid)


def test_size_root_and_height(wordnet: Taxonomy) -> None:
    assert (wordnet.version, len(wordnet), wordnet.root) == ("3.0", 82_115, "n00001740")
    assert wordnet.graph.max_depths.max() == 19
    assert list(wordnet) == sorted(wordnet)
    assert DOG in wordnet
    assert "dog" not in wordnet


def hashed_wnids(wordnet: Taxonomy) -> list[str]:
    return [wordnet.wnid(i) for i in hashed("nodes", 4_000, len(wordnet))]


def test_relations_depths_and_names_are_as_frozen(wordnet: Taxonomy) -> None:
    answers = (
        (
            *(wordnet.name(wnid), wordnet.lemmas(wnid), wordnet.parents(wnid), wordnet.children(wnid)),
            *(wordnet.min_depth(wnid), wordnet.max_depth(wnid), sorted(wordnet.ancestors(wnid).items())),
        )
        for wnid in hashed_wnids(wordnet)
    )
    assert digest_of(answers) == FROZEN["relations"]


@pytest.mark.oracle
def test_relations_depths_and_names_equal_nltk(nltk_wordnet: Any, wordnet: Taxonomy) -> None:
    def wnids(found: Any) -> tuple[str, ...]:
        return tuple(sorted(f"n{s.offset():08d}" for s in found))

    for wnid in hashed_wnids(wordnet):
        noun = synset(nltk_wordnet, wnid)
        assert wordnet.name(wnid) == noun.name()
        assert wordnet.from_name(noun.name()) == wnid
        assert wordnet.lemmas(wnid) == tuple(noun.lemma_names())
        assert wordnet.parents(wnid) == wnids(noun.hypernyms() + noun.instance_hypernyms())
        assert wordnet.children(wnid) == wnids(noun.hyponyms() + noun.instance_hyponyms())
        assert wordnet.min_depth(wnid) == noun.min_depth()
        assert wordnet.max_depth(wnid) == noun.max_depth()
        assert wordnet.ancestors(wnid) == {
            f"n{s.offset():08d}": d for s, d in noun._shortest_hypernym_paths(False).items()
        }


FROZEN = {
    "relations": "1f29018e580fd489010d85b2640021110efcf0fa8b1af237884fa9eb57166fb7",
    "definitions": "e1e047262f311df81109a0e40f8a53a5e4eb2b83910591630e5e67ad53d00b44",
    "tree": "cf1c85f75f8aacfee9bd882aa347058a30c5084470648ecc88cf45e22ab0d65c",
}
"""Digests of what NLTK answers."""


def test_definitions_and_examples_are_as_frozen(wordnet: Taxonomy) -> None:
    assert (
        digest_of((wordnet.definition(wnid), wordnet.examples(wnid)) for wnid in wordnet)
        == FROZEN["definitions"]
    )


@pytest.mark.oracle
def test_definitions_and_examples_of_every_noun_equal_nltks(nltk_wordnet: Any, wordnet: Taxonomy) -> None:
    with nltk_wordnet.open("data.noun") as file:
        lines = [line for line in file.read().splitlines() if not line.startswith(" ")]
    assert len(lines) == len(wordnet)
    for line in lines:  # as its reader parses them, without looking up each
        noun = nltk_wordnet._synset_from_pos_and_line("n", line)
        wnid = f"n{noun.offset():08d}"
        assert wordnet.definition(wnid) == noun.definition()
        assert wordnet.examples(wnid) == tuple(noun.examples())


def test_the_first_definition_ends_at_a_semicolon_outside_parentheses(
    wordnet: Taxonomy,
) -> None:
    semicolon, cow = wordnet.find("semicolon"), wordnet.find("cow.n.01")
    assert wordnet.definition(semicolon) == (
        "a punctuation mark (`;') used to connect independent clauses; indicates a closer relation than "
        "does a period"
    )
    assert wordnet.first_definition(semicolon) == (
        "a punctuation mark (`;') used to connect independent clauses"
    )
    assert wordnet.definition(cow) == "female of domestic cattle:"  # as NLTK
    assert wordnet.first_definition(cow) == "female of domestic cattle"
    assert wordnet.examples(cow) == ("`moo-cow' is a child's term",)


def test_arrays_describe_one_graph(wordnet: Taxonomy) -> None:
    n = len(wordnet)
    child = np.repeat(np.arange(n), np.diff(wordnet.graph.parent_indptr))
    parent = np.repeat(np.arange(n), np.diff(wordnet.graph.child_indptr))
    down = sorted(zip(parent.tolist(), wordnet.graph.child_indices.tolist(), strict=True))
    assert down == sorted(zip(wordnet.graph.parent_indices.tolist(), child.tolist(), strict=True))
    assert sorted(wordnet.graph.order.tolist()) == list(range(n))
    position = np.empty(n, int)
    position[wordnet.graph.order] = np.arange(n)
    assert (position[wordnet.graph.parent_indices] < position[child]).all()
    for array in (
        wordnet.graph.parent_indptr,
        wordnet.graph.child_indices,
        wordnet.graph.min_depths,
        wordnet.graph.order,
    ):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


@given(nouns, nouns)
def test_ancestors_and_descendants_mirror_each_other(x: str, y: str) -> None:
    above = EMBEDDED.ancestors(x)
    assert above[x] == 0
    assert above[EMBEDDED.root] == EMBEDDED.min_depth(x)
    assert EMBEDDED.is_ancestor(y, x) == (y in above)
    nearest = min((a for a in above if a != x), key=lambda a: (above[a], a), default=x)
    assert x in EMBEDDED.descendants(nearest, y)
    assert y in EMBEDDED.descendants(nearest, y)


@given(nouns, st.data())
def test_path_up_is_a_shortest_chain(x: str, data: st.DataObject) -> None:
    above = EMBEDDED.ancestors(x)
    top = data.draw(st.sampled_from(sorted(above)))
    chain = EMBEDDED.path_up(x, top)
    assert (chain[0], chain[-1], len(chain)) == (x, top, above[top] + 1)
    assert all(upper in EMBEDDED.parents(lower) for lower, upper in pairwise(chain))


@given(nouns, nouns)
def test_properties_of_the_measures(x: str, y: str) -> None:
    forth, back = similarity.compare_synsets(x, y), similarity.compare_synsets(y, x)
    for measure in ("distance", "path", "lch", "lch_perl", "wup_wn", "wup_perl", "mean", "mean2"):
        assert getattr(forth, measure) == getattr(back, measure)
    itself = similarity.compare_synsets(x, x)
    for measure in ("path", "lch", "wup_wn", "mean"):
        assert getattr(forth, measure) <= getattr(itself, measure)
    assert (forth.distance == 0) == (x == y)
    assert itself.path == itself.wup_wn == itself.mean == 1
    assert 0 < forth.mean <= 1
    assert 0 < forth.wup_perl <= 1
    up_x, up_y = EMBEDDED.ancestors(x), EMBEDDED.ancestors(y)
    assert forth.distance == min(up_x[a] + up_y[a] for a in up_x if a in up_y)
    assert forth.lcs in up_x.keys() & up_y.keys()


def test_ancestors_are_remembered_no_longer_than_their_taxonomy() -> None:
    small = Taxonomy.from_edges(TOY)
    assert small.ancestors("bird") == {"bird": 0, "animal": 1, "root": 2}
    graph = weakref.ref(small.graph)
    del small
    gc.collect()
    assert graph() is None


def test_path_up_takes_the_smaller_of_two_parents(wordnet: Taxonomy) -> None:
    diamond = Taxonomy.from_edges({"b": ("root",), "a": ("root",), "x": ("b", "a")})
    assert diamond.path_up("x", "root") == ("x", "a", "root")
    with pytest.raises(TaxonomyError):
        diamond.path_up("a", "b")


def test_the_tree_gives_the_published_protocol(wordnet: Taxonomy) -> None:
    """P1 of Palechor et al.: 116 dogs, 67 other four-legged animals, 166 others; more on the full graph."""
    classes = [entry.wnids[0] for entry in load_catalog("imagenet1k").classes]
    known = ("n02084071",)
    negative = (
        *("n02118333", "n02115335", "n02114100", "n02120997"),
        *("n02131653", "n02441326", "n02370806", "n02469914"),
    )
    unknown = ("n07555863", "n03791235", "n03183080")

    def counts(graph: Taxonomy) -> list[int]:
        groups = (known, negative, unknown)
        by_class = [sum(any(graph.is_ancestor(a, c) for a in group) for c in classes) for group in groups]
        by_root = [len(graph.descendants(*group) & set(classes)) for group in groups]
        assert by_class == by_root
        return by_class

    assert counts(wordnet.tree()) == [116, 67, 166]
    assert counts(wordnet) == [118, 72, 179]


def test_the_tree_is_as_frozen(wordnet: Taxonomy) -> None:
    tree = wordnet.tree()
    assert digest_of(tree.parents(wnid) for wnid in wordnet) == FROZEN["tree"]
    assert sum(len(wordnet.parents(wnid)) > 1 for wnid in imagenet_choices()) == 1422


@pytest.mark.oracle
def test_the_tree_places_every_synset(nltk_wordnet: Any, wordnet: Taxonomy) -> None:
    """One of NLTK's hypernyms each, up to entity; named things, which have none, stand alone."""
    tree, several = wordnet.tree(), set()
    for found in nltk_wordnet.all_synsets("n"):
        wnid = f"n{found.offset():08d}"
        hypernyms = {f"n{up.offset():08d}" for up in found.hypernyms()}
        kept = tree.parents(wnid)
        assert len(kept) == bool(hypernyms)
        assert hypernyms.issuperset(kept)
        if len(hypernyms) > 1:
            several.add(wnid)
    assert several == imagenet_choices().keys()
    assert len(several) == 1422


def test_the_tree_is_made_of_the_published_order(facts: Path) -> None:
    assert TREE_CHOICES.read_text("utf-8").splitlines() == lines(facts)


def test_the_tree_of_imagenet21k_p_comes_out(wordnet: Taxonomy, facts: Path) -> None:
    """The winter21 P classes and all that lies above them: the edges that Ridnik et al.'s file holds."""
    field = facts / "field/imagenet21k"
    classes = [r["wnid"] for r in Published(field / "synsets.tsv").records() if r["p_winter21"] == "1"]
    published = {(r["parent"], r["child"]) for r in Published(field / "p_winter21_tree.tsv").records()}
    tree = wordnet.tree()
    ours = {(p, child) for wnid in classes for child in tree.ancestors(wnid) for p in tree.parents(child)}
    assert (len(classes), len(ours)) == (10_450, 11_924)
    assert ours == published
    assert len({wnid for edge in ours for wnid in edge}) == 11_925


def test_the_tree_names_what_it_does_not_know(wordnet: Taxonomy) -> None:
    undecided = "n02121808"  # domestic cat, between cat and domestic animal
    below = "n02123045"  # tabby
    choices = imagenet_choices()
    tree = wordnet.tree({child: choices[child] for child in choices if child != undecided})
    assert wordnet.tree().parents(undecided) == (choices[undecided],)
    for ask in (tree.parents, tree.ancestors, tree.min_depth, tree.max_depth):
        with raises(TaxonomyError, naming=undecided):
            ask(undecided)
    for ask in (tree.ancestors, tree.max_depth):
        with raises(TaxonomyError, naming=undecided):
            ask(below)
    with raises(TaxonomyError, naming=undecided):
        similarity.similarity_matrix("path", [DOG, below], taxonomy=tree)
    assert tree.parents(below) == (undecided,)


def test_the_tree_drops_instance_edges_and_checks_choices() -> None:
    graph = Taxonomy.from_edges(
        {"a": ("root",), "b": ("root",), "x": ("a", "b"), "y": ("a", "b")},
        instances={"einstein": ("a",), "x": ("root",)},
    )
    tree = graph.tree({"x": "b"})
    assert tree.parents("x") == ("b",)
    assert tree.parents("einstein") == ()
    assert graph.parents("einstein") == ("a",)
    assert tree.descendants("root") == {"root", "a", "b", "x"}
    assert len(tree) == len(graph)
    with pytest.raises(TaxonomyError):
        tree.parents("y")
    with pytest.raises(TaxonomyError):
        tree.path_up("x", "a")
    with raises(TaxonomyError, where="tree choices", naming="einstein"):
        graph.tree({"x": "einstein"})
    with raises(TaxonomyError, naming="z"):
        graph.tree({"z": "a"})
    with pytest.raises(TaxonomyError):
        similarity.compare_synsets("einstein", "a", tree)


def test_a_wnid_of_another_version_is_refused_with_the_reason(wordnet: Taxonomy) -> None:
    for call in (
        wordnet.index,
        wordnet.parents,
        wordnet.ancestors,
        wordnet.lemmas,
        wordnet.gloss,
        wordnet.descendants,
    ):
        with raises(TaxonomyError, naming=("n02086723", "3.0")):
            call("n02086723")  # the dog of WordNet 3.1
    with raises(TaxonomyError, naming="n02086723"):
        wordnet.indices([DOG, "n02086723"])
    with raises(TaxonomyError, naming=DOG):
        wordnet.index("dog")  # a word where a wnid was wanted: its senses are offered


def test_cycles_and_emptiness_are_refused() -> None:
    with raises(TaxonomyError, where="b"):
        Taxonomy.from_edges({"a": ("b",), "b": ("a",), "c": ("root",)})
    with raises(TaxonomyError, where="toy"):
        Taxonomy.from_edges({})
    with raises(TaxonomyError, where="Taxonomy(version='toy', synsets=1)"):
        similarity.compare_synsets("a", "a", Taxonomy.from_edges({"a": ()}))
    with raises(TaxonomyError, naming="255"):
        Taxonomy.from_edges({f"n{i:03d}": (f"n{i - 1:03d}",) for i in range(1, 257)})


def test_embedded_taxonomies_pickle_as_references(wordnet: Taxonomy, toy: Taxonomy) -> None:
    for shared in (wordnet, wordnet.tree()):
        text = pickle.dumps(shared)
        assert len(text) < 200
        assert pickle.loads(text) is shared
    copy = pickle.loads(pickle.dumps(toy))
    assert {x: copy.ancestors(x) for x in copy} == {x: toy.ancestors(x) for x in toy}
    assert copy.name("hound") == "hound.n.01"


def test_load_names_a_taxonomy(wordnet: Taxonomy, tmp_path: Path) -> None:
    assert taxonomy.load() is wordnet
    with raises(TaxonomyError, where="data.noun"):
        taxonomy.load(str(tmp_path))


def test_importing_the_engine_imports_no_heavy_library() -> None:
    code = (
        "import sys; from wordnet_splits.wordnet import similarity, taxonomy; t = taxonomy.load(); "
        "similarity.compare_synsets('n02084071', 'n02121620'); t.senses('dogs'); "
        "print([m for m in ('nltk', 'pandas', 'torch', 'scipy', 'datasets') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
