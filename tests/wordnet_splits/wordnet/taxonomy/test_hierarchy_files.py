"""Hierarchies as files: round trips, what is refused and at which line."""

from __future__ import annotations

import os
import pickle
import tempfile
from collections import Counter
from dataclasses import fields
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.raising import raises
from wordnet_splits.base.errors import TaxonomyError
from wordnet_splits.wordnet.taxonomy import Taxonomy, hierarchy_files, load
from wordnet_splits.wordnet.taxonomy.graph import KINDS as PARTS

EXTENSION = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE LexicalResource SYSTEM "http://globalwordnet.github.io/schemas/WN-LMF-1.1.dtd">
<LexicalResource xmlns:dc="https://globalwordnet.github.io/schemas/dc/">
<LexiconExtension id="mine" label="Mine" language="en" email="a@b.c" license="none" version="1">
<Extends id="oewn" version="2024"/>
<LexicalEntry id="mine-puppy-n"><Lemma writtenForm="puppy" partOfSpeech="n"/>
<Sense id="mine-puppy" synset="mine-7-n"/></LexicalEntry>
<LexicalEntry id="mine-dog-n"><Lemma writtenForm="dog" partOfSpeech="n"/>
<Sense id="mine-dog" synset="mine-7-n"/></LexicalEntry>
<Synset id="mine-7-n" ili="" partOfSpeech="n"><Definition>a young	dog</Definition>
<SynsetRelation relType="hypernym" target="oewn-3-n"/></Synset>
<ExternalSynset id="oewn-6-n"><SynsetRelation relType="hypernym" target="oewn-2-n"/></ExternalSynset>
<ExternalSynset id="oewn-3-n"/><ExternalSynset id="oewn-2-n"/>
</LexiconExtension>
</LexicalResource>
"""


def test_wordnet_as_files_is_the_same_taxonomy(wordnet: Taxonomy, tmp_path: Path) -> None:
    wordnet.to_files(tmp_path / "tree.tsv", tmp_path / "nodes.tsv")
    there = Taxonomy.from_files(tmp_path / "tree.tsv", tmp_path / "nodes.tsv", name="nouns", version="3.0")
    assert there.title == "nouns 3.0"
    assert (there.wnids, there.lacks) == (wordnet.wnids, ())
    assert not there.is_wordnet
    for mine, other in (
        (wordnet.graph, there.graph),
        (wordnet._words, there._words),
        (wordnet._parts, there._parts),
    ):
        for field in fields(mine):
            assert np.array_equal(getattr(mine, field.name), getattr(other, field.name)), field.name
    assert np.array_equal(wordnet.graph.max_depths, there.graph.max_depths)
    assert all(wordnet.gloss(wnid) == there.gloss(wnid) for wnid in wordnet.wnids[::7])
    assert there.digest == wordnet.digest
    copy = pickle.loads(pickle.dumps(there))
    assert (repr(copy), copy.tables()) == (repr(there), there.tables())


def test_an_extension_is_read_with_the_lexicon_that_it_extends(lexicon: str, tmp_path: Path) -> None:
    import wn

    (tmp_path / "mine.xml").write_text(EXTENSION)
    wn.add(tmp_path / "mine.xml", progress_handler=None)
    mine, alone = load("mine:1"), load(lexicon)
    assert (mine.title, alone.title) == ("mine 1", "oewn 2024")
    assert {*mine} - {*alone} == {"mine-7-n"}
    assert mine.parents("mine-7-n") == ("oewn-3-n",)
    assert mine.parents("oewn-6-n") == ("oewn-1-n", "oewn-2-n")
    assert alone.parents("oewn-6-n") == ("oewn-1-n",)
    assert mine.senses("dog") == ("oewn-3-n", "oewn-4-n", "mine-7-n")
    assert mine.gloss("mine-7-n") == "a young dog"
    alone.to_files(tmp_path / "tree.tsv", tmp_path / "nodes.tsv")
    assert Taxonomy.from_files(tmp_path / "tree.tsv", tmp_path / "nodes.tsv").digest == alone.digest
    barred = EXTENSION.replace('"puppy"', '"pup|py"').replace('version="1"', 'version="2"')
    (tmp_path / "barred.xml").write_text(barred)
    wn.add(tmp_path / "barred.xml", progress_handler=None)
    with raises(TaxonomyError, where="mine:2"):  # a bar separates names
        load("mine:2")


@pytest.mark.parametrize("given", ["oewn:1066", "oewn:*", "oewn:", ":2024"])
def test_a_lexicon_that_wn_lacks(given: str, lexicon: str) -> None:
    with raises(TaxonomyError, where=given):
        Taxonomy.from_lexicon(given)


EDGES = [
    *("child\tparent\tkind", "dog\tanimal\tis-a", "cat\tanimal\tis-a"),
    *("Rex\tdog\tinstance", "tail\tdog\tpart", "tail\tanimal\t"),
]
NODES = [
    *("node\tnames\tgloss", "animal\t\tit lives", "dog\tdog#1|domestic dog\t", "cat\tcat\t"),
    *("Rex\tRex|dog#2\t", "tail\ttail_end\t"),
]
Lines = list[str] | bytes


def written(folder: Path, tree: Lines, nodes: Lines | None = None) -> tuple[Path, ...]:
    """Write the lines of both files."""
    paths = []
    for name, lines in (("tree.tsv", tree), ("nodes.tsv", nodes)):
        if lines is not None:
            content = lines if isinstance(lines, bytes) else "".join(f"{line}\n" for line in lines).encode()
            (folder / name).write_bytes(content)
            paths.append(folder / name)
    return tuple(paths)


def test_a_small_hierarchy(tmp_path: Path) -> None:
    tree = load(str(written(tmp_path, EDGES, NODES)[0]))
    assert (tree.title, tree.root, len(tree)) == ("tree.tsv", "animal", 5)
    assert repr(tree) == f"Taxonomy(name='tree.tsv', version='{tree.digest[:12]}', nodes=5)"
    assert [tree.name(node) for node in tree] == ["Rex", "animal", "cat", "dog#1", "tail_end"]
    assert (tree.senses("dogs"), tree.find("Tail end"), tree.find("dog#2")) == (("dog", "Rex"), "tail", "Rex")
    assert (tree.wholes("tail", "part"), tree.parents("tail")) == (("dog",), ("animal",))
    assert tree.graph.instance.tolist() == [True, False, False, False]
    assert (tree.gloss("animal"), tree.definition("dog"), tree.lacks) == ("it lives", "", ())
    bare = Taxonomy.from_files(tmp_path / "tree.tsv", name="pets", version="2")
    assert (bare.title, bare.lacks) == ("pets 2", ("glosses", "names"))
    assert bare.name("tail") == "tail"
    for call in (bare.index, bare.find, bare.from_name, bare.parents):
        with raises(TaxonomyError, naming=("nowhere", "pets 2")):
            call("nowhere")


def lines(base: list[str], at: int, text: str | None) -> list[str]:
    """Return lines with line ``at``, from 1, replaced, or added at the end."""
    return [*base[: at - 1], *([] if text is None else [text]), *base[at:]]


LONG = ["child\tparent", *(f"n{n}\tn{n + 1}" for n in range(255))]
WIDE = ["child\tparent", *(f"n{n}\ttop" for n in range(256)), *(f"x\tn{n}" for n in range(256))]
NAMES = "|".join(f"c{n}" for n in range(256))
BAD = {
    "an empty file": ([], None, "tree.tsv, line 1"),
    "only comments": (["# nothing"], None, "tree.tsv, line 1"),
    "another header": (lines(EDGES, 1, "node\tparent"), None, "tree.tsv, line 1"),
    "columns separated by commas": (["child,parent", "dog,animal"], None, "tree.tsv, line 1"),
    "no rows": (["# mine", "child\tparent"], None, "tree.tsv, line 2"),
    "a column less": (lines(EDGES, 3, "cat\tanimal"), None, "tree.tsv, line 3"),
    "a column more": (lines(EDGES, 3, "cat\tanimal\tis-a\t"), None, "tree.tsv, line 3"),
    "an unknown kind": (lines(EDGES, 3, "cat\tanimal\tisa"), None, "tree.tsv, line 3"),
    "a blank id": (lines(EDGES, 3, "animal\t\tis-a"), None, "tree.tsv, line 3"),
    "an id with a blank": (lines(EDGES, 3, "big cat\tanimal\tis-a"), None, "tree.tsv, line 3"),
    "an id of 201 letters": (lines(EDGES, 3, f"{'c' * 201}\tanimal\tis-a"), None, "tree.tsv, line 3"),
    "a control character": (lines(EDGES, 3, "ca\x07t\tanimal\tis-a"), None, "tree.tsv, line 3"),
    "a line separator": (lines(NODES, 4, "cat\tcat\u2028\t"), EDGES, "nodes.tsv, line 4"),
    "a reversed text": (lines(NODES, 4, "cat\tcat\u202e\t"), EDGES, "nodes.tsv, line 4"),
    "a self edge": (lines(EDGES, 4, "dog\tdog\tis-a"), None, "tree.tsv, line 4"),
    "an edge twice": ([*EDGES, "dog\tanimal\tinstance"], None, "tree.tsv, line 7"),
    "a cycle": ([*EDGES, "animal\tRex\tis-a"], None, "tree.tsv, line 7"),
    "a cycle beside the root": ([*EDGES, "a\tb\t", "b\ta\t", "c\ta\t"], None, "tree.tsv, line 8"),
    "two roots": ([*EDGES, "oak\tplant\t"], None, "tree.tsv, line 7"),
    "a node that is only a part": ([*EDGES, "whisker\tcat\tpart"], None, "tree.tsv, line 7"),
    "255 edges": (LONG, None, "tree.tsv, line 2"),
    "256 parents": (WIDE, None, "tree.tsv, line 513"),
    "a node in no edge": ([*NODES, "oak\toak\t"], EDGES, "nodes.tsv, line 7"),
    "a node without a row": (NODES[:-1], EDGES, "tree.tsv, line 5"),
    "a node twice": ([*NODES, "cat\tpuss\t"], EDGES, "nodes.tsv, line 7"),
    "names alike": (lines(NODES, 4, "cat\tDomestic Dog\t"), EDGES, "nodes.tsv, line 3"),
    "names alike in case": (lines(NODES, 6, "tail\tCAT\t"), EDGES, "nodes.tsv, line 4"),
    "a gap in the senses": (lines(NODES, 5, "Rex\tRex|dog#3\t"), EDGES, "nodes.tsv, line 5"),
    "a sense twice": (lines(NODES, 5, "Rex\tRex|dog#1\t"), EDGES, "nodes.tsv, line 5"),
    "one sense of two numbers": (lines(NODES, 5, "Rex\tDog#3|dog#2\t"), EDGES, "nodes.tsv, line 5"),
    "a single sense 2": (lines(NODES, 4, "cat\tcat#2\t"), EDGES, "nodes.tsv, line 4"),
    "a name twice": (lines(NODES, 4, "cat\tcat|cat\t"), EDGES, "nodes.tsv, line 4"),
    "a name that is empty": (lines(NODES, 4, "cat\tcat||puss\t"), EDGES, "nodes.tsv, line 4"),
    "a name of 257 letters": (lines(NODES, 4, f"cat\t{'c' * 257}\t"), EDGES, "nodes.tsv, line 4"),
    "256 names": (lines(NODES, 4, f"cat\t{NAMES}\t"), EDGES, "nodes.tsv, line 4"),
    "no gloss": (lines(NODES, 4, "cat\tcat"), EDGES, "nodes.tsv, line 4"),
    "not UTF-8": (b"child\tparent\nh\xe9ron\tbird\n", None, "tree.tsv"),
    "an image": (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", None, "tree.tsv"),
}
"""The lines of a malformed file, those of tree.tsv if it is a nodes.tsv, and the place of the error."""


@pytest.mark.parametrize("case", BAD)
def test_a_malformed_file_is_refused_at_its_line(case: str, tmp_path: Path) -> None:
    content, tree, where = BAD[case]
    paths = written(tmp_path, content) if tree is None else written(tmp_path, tree, content)
    with raises(TaxonomyError, where=where) as caught:
        Taxonomy.from_files(*paths)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("count", [" ", "-1", "1.5", "1e3", "9" * 13, "٣", "many"])
def test_a_malformed_count_is_refused(count: str, tmp_path: Path) -> None:
    nodes = [f"{line}\t7" for line in NODES]
    nodes[0] = "node\tnames\tgloss\tcount"
    counted = Taxonomy.from_files(*written(tmp_path, EDGES, nodes))
    assert counted.counts is not None
    assert counted.counts.tolist() == [7] * 5
    assert Taxonomy.from_files(*written(tmp_path, *counted.tables())).digest == counted.digest
    empty = Taxonomy.from_files(*written(tmp_path, EDGES, lines(nodes, 4, "cat\tcat\t\t")))
    assert empty.counts is not None
    assert empty.counts[empty.index("cat")] == 0
    with raises(TaxonomyError, where="nodes.tsv, line 4"):
        Taxonomy.from_files(*written(tmp_path, EDGES, lines(nodes, 4, f"cat\tcat\t\t{count}")))


def test_a_root_is_made_above_several(tmp_path: Path) -> None:
    paths = written(tmp_path, [*EDGES, "oak\tplant\t"], [*NODES, "oak\t\t", "plant\t\t", "stone\t\t"])
    made = Taxonomy.from_files(*paths, root="all")
    assert (made.root, made.children("all")) == ("all", ("animal", "plant", "stone"))
    again = Taxonomy.from_files(*written(tmp_path, *made.tables()), root="all")
    assert again.digest == made.digest
    with raises(TaxonomyError, where="tree.tsv", naming="all"):
        Taxonomy.from_files(*paths, root="everything")  # has one root now
    written(tmp_path, [*EDGES, "oak\tplant\t"])
    for name in ("oak", "two words", "#all"):
        with raises(TaxonomyError, where="tree.tsv", naming=name):
            Taxonomy.from_files(tmp_path / "tree.tsv", root=name)
    assert len(Taxonomy.from_files(tmp_path / "tree.tsv", root="").graph.roots) == 2


def test_files_that_are_not_read(tmp_path: Path) -> None:
    huge, pipe = tmp_path / "huge.tsv", tmp_path / "pipe.tsv"
    with huge.open("wb") as file:
        file.truncate(hierarchy_files.LARGEST + 1)
    os.mkfifo(pipe)
    for path in (huge, pipe, tmp_path, tmp_path / "none.tsv"):
        with raises(TaxonomyError, where=path.name):
            Taxonomy.from_files(path)


NAMES_OF = st.sets(st.sampled_from(["a", "B c", "d_e", "C#"]), max_size=3)


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], list[str]]:
    """A directed acyclic graph with one root, parts, names with senses, glosses and counts, as rows."""
    n = draw(st.integers(2, 9))
    ids = draw(st.lists(st.text("abA#é_1", min_size=1, max_size=3), min_size=n, max_size=n, unique=True))
    ids = [name if name[0] != "#" else f"x{name}{at}" for at, name in enumerate(ids)]
    edges = {}
    for child in range(1, n):
        for parent in draw(st.sets(st.integers(0, child - 1), min_size=1, max_size=3)):
            edges[child, parent] = draw(st.sampled_from(["is-a", "instance", ""]))
    rows = [f"{ids[child]}\t{ids[parent]}\t{kind}" for (child, parent), kind in edges.items()]
    whole = ids[draw(st.integers(1, n - 1))]
    rows += [f"{ids[0]}\t{whole}\t{kind}" for kind in draw(st.sets(st.sampled_from(PARTS)))]
    nodes, seen = [], Counter[str]()
    for node in ids:
        words = draw(NAMES_OF)
        seen.update(words)
        cell = "|".join(f"{word}#{seen[word]}" for word in sorted(words)) or f"{node}-{ids.index(node)}"
        gloss = draw(st.sampled_from(["", "a gloss; 'of two'"]))
        nodes.append(f"{node}\t{cell}\t{gloss}\t{len(words)}")
    return rows, nodes


@given(tables(), st.randoms())
def test_the_order_of_rows_is_without_effect(rows: tuple[list[str], list[str]], random: Random) -> None:
    read = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(2):
            for part in rows:
                random.shuffle(part)
            edges, nodes = (["child\tparent\tkind", *rows[0]], ["node\tnames\tgloss\tcount", *rows[1]])
            read.append(Taxonomy.from_files(*written(Path(folder), edges, nodes)))
        read.append(Taxonomy.from_files(*written(Path(folder), *read[0].tables())))
    assert len({pickle.dumps(taxonomy) for taxonomy in read}) == 1
    assert len({taxonomy.tables() for taxonomy in read}) == 1


def test_a_made_root_has_the_name_of_no_node(tmp_path: Path) -> None:
    paths = written(tmp_path, [*EDGES, "oak\tplant\t"], [*NODES, "oak\tall\t", "plant\t\t"])
    with raises(TaxonomyError, where="nodes.tsv", naming="all"):
        Taxonomy.from_files(*paths, root="all")
