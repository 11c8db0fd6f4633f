"""Class sets: each beside its published list, and what the table and the differences say."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

from tests.raising import mentions, raises
from tests.wordnet_splits.command import Command
from tools.facts.class_sets import LISTS
from wordnet_splits.base.errors import DataError, RecipeError, UnknownNameError
from wordnet_splits.benchmark.construct import build_benchmark
from wordnet_splits.benchmark.recipe import class_set_names, load_recipe, recipe_names
from wordnet_splits.datasets.catalog import load_catalog
from wordnet_splits.studies.class_sets import ClassSet, class_set, read_published
from wordnet_splits.wordnet.taxonomy import Taxonomy, load

PAGE = Path(__file__).resolve().parents[3] / "docs" / "evidence" / "class-sets.md"


class Made(dict[str, ClassSet]):
    """Every set, made when it is first asked for."""

    def __missing__(self, name: str) -> ClassSet:
        self[name] = class_set(name, load())
        return self[name]


@pytest.fixture(scope="module")
def sets() -> Made:
    return Made()


def test_every_set_has_a_list_in_the_facts_and_no_benchmarks_name() -> None:
    assert set(LISTS) == set(class_set_names())
    assert not set(class_set_names()) & set(recipe_names())


@pytest.mark.parametrize("name", class_set_names())
def test_the_classes_are_those_published(name: str, sets: Made, facts: Path) -> None:
    """By the published list itself: the same lines, in its order where that is published."""
    found, published = sets[name], LISTS[name](facts)
    told = found.published
    ours, theirs = (found.lines(), published) if told.ordered else (sorted(found.lines()), sorted(published))
    differing = found.differences(published)
    ways = [(bool(d.published), bool(d.ours)) for d in differing]
    said = (told.only_published, told.only_ours, told.elsewhere)
    assert (ways.count((True, False)), ways.count((False, True)), ways.count((True, True))) == said
    assert (ours == theirs) == (not any(said))
    text = "".join("\t".join(line) + "\n" for line in theirs)
    assert hashlib.sha256(text.encode()).hexdigest() == told.sha256


@pytest.mark.parametrize("name", class_set_names())
def test_a_set_is_a_recipe_that_says_whose_it_is(name: str, sets: Made) -> None:
    recipe = sets[name].recipe
    assert recipe.reproduces
    assert recipe.paper
    assert recipe.title
    counts = {g.name: sum(c.group == g.name for c in sets[name].classes) for g in recipe.group}
    told = sets[name].published
    if not told.only_published + told.only_ours:
        assert counts == {g.name: g.published["classes"] for g in recipe.group}
    assert sets[name].same == (not told.only_published + told.only_ours + told.elsewhere)


def test_the_graph_gives_other_halves_and_categories_than_the_tree(facts: Path) -> None:
    """ImageNet-X stands on the tree, tieredImageNet and Meta-Dataset on the graph: no other will do."""
    for name, other, at_least in (
        ("imagenet-x", "wordnet", 50),
        ("tiered-imagenet", "imagenet-tree", 40),
        ("meta-dataset-imagenet", "imagenet-tree", 120),
    ):
        recipe = load_recipe(name).model_copy(update={"hierarchy": other})
        assert len(class_set(recipe).differences(LISTS[name](facts))) >= at_least


def test_a_class_below_two_categories_is_in_no_part(sets: Made, wordnet) -> None:
    every = {c.superclass for c in sets["tiered-imagenet"].classes}
    assert len(every) == 34
    taken = {c.class_id for c in sets["tiered-imagenet"].classes}
    dropped = set()
    for item in load_catalog("imagenet1k"):
        above = wordnet.ancestors(item.class_id).keys()
        assert (len(above & every) == 1) == (item.class_id in taken)
        if len(above & every) > 1:
            dropped.add(item.class_id)
    assert len(dropped) == 14
    assert all("below several" in sets["tiered-imagenet"].refused[c] for c in dropped)


def test_a_balanced_set_is_the_first_of_each_superclass(sets: Made) -> None:
    whole, balanced = sets["robustness-living-9"], sets["robustness-living-9-balanced"]
    below: dict[str, list[str]] = {}
    for one in whole.classes:
        below.setdefault(one.superclass, []).append(one.class_id)
    least = min(map(len, below.values()))
    assert {c.class_id for c in balanced.classes} == {
        c for own in below.values() for c in sorted(own)[:least]
    }


def test_differences_name_every_class_both_ways(sets: Made, tmp_path: Path) -> None:
    found = sets["imagenet-100-gcd"]
    lines = found.lines()
    moved, gone = lines[0], lines[1]
    altered = [("new", moved[1]), *lines[2:], ("old", "n02089973")]
    path = tmp_path / "list.tsv"
    path.write_text("# ours\nrole\twnid\n" + "".join(f"{g}\t{c}\n" for g, c in altered))
    differing = found.differences(read_published(path, found))
    assert {(d.class_id, d.published, d.ours) for d in differing} == {
        (moved[1], "new", "old"),
        (gone[1], "", "old"),
        ("n02089973", "old", ""),
    }
    assert all(d.name and d.evidence for d in differing)
    assert not found.differences(lines)


def test_a_file_of_several_lists_is_read_for_the_groups_of_the_set(tmp_path: Path) -> None:
    path = tmp_path / "list.tsv"
    path.write_text("wnid\trole\nn01440764\tid\nn01443537\tOOD\nn01484850\tother\n")
    assert read_published(path, class_set("imagenet-x")) == [("id", "n01440764"), ("ood", "n01443537")]


@pytest.mark.parametrize(
    ("text", "error", "named"),
    [
        ("", DataError, ()),
        ("wnid\n", UnknownNameError, "group"),
        ("role\nid\n", UnknownNameError, "class_id"),
        ("role\twnid\nid\n", DataError, ()),
    ],
)
def test_a_file_that_is_no_list_is_refused(
    text: str, error: type[Exception], named: object, sets: Made, tmp_path: Path
) -> None:
    path = tmp_path / "list.tsv"
    path.write_text(text)
    with raises(error, where="list.tsv", naming=named):
        read_published(path, sets["imagenet-x"])


def test_a_recipe_without_a_published_list_has_no_differences() -> None:
    with raises(RecipeError, where="digits"):
        class_set("digits").lines()


def test_a_set_builds_as_any_recipe(wordnet: Taxonomy) -> None:
    made = build_benchmark("imagenet-x", taxonomy=wordnet)
    groups = {row["class_id"]: row["group"] for row in made.manifest.classes.to_pylist()}
    assert {c for c, g in groups.items() if g == "id"} == {
        c.class_id for c in class_set("imagenet-x").classes if c.group == "id"
    }
    assert made.manifest.images("test", "ood").num_rows == 25_000


@pytest.mark.docs
def test_the_page_runs_as_pasted(capsys) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    exec(compile(code, str(PAGE), "exec"), {})
    first, second, third = capsys.readouterr().out.splitlines()
    assert first == "True 608"
    assert second == "train n01524359 n01530575 brambling"
    assert "bulletproof vest is below several of the synsets: garment (n03419014)" in third


def test_the_command(capsys, monkeypatch, tmp_path, facts: Path) -> None:
    command = Command(capsys, monkeypatch, tmp_path)
    found = command("audit", "sets", "--json")
    assert (found.code, found.json["ok"]) == (0, True)
    assert [row["name"] for row in found.json["sets"]] == list(class_set_names())
    listing = facts / "field/imagenet_x/classes.tsv"
    compare = ("audit", "sets", "imagenet-x", "--published")
    assert "1,000 classes, 0 differences" in command(*compare, listing).out
    assert command(*compare, listing, "--json").json == {
        "same": True,
        "known": True,
        "differences": [],
    }
    shuffled = tmp_path / "shuffled.tsv"
    head, *rows = [line for line in listing.read_text().splitlines() if line[0] != "#"]
    shuffled.write_text("\n".join([head, *reversed(rows)]))
    done = command(*compare, shuffled)
    assert (done.code, "in another order" in done.out, "differs from the list" in done.err) == (1, True, True)
    short = tmp_path / "short.tsv"
    short.write_text("\n".join([head, *rows[:-1]]))
    done = command(*compare, short)
    assert (done.code, "1 differences: 1 only ours" in done.out) == (1, True)
    first = command("audit", "sets", "imagenette").out.splitlines()[2].split()
    assert first == ["imagenette", "0", "n01440764", "tench"]
    assert command("audit", "sets", "--published", listing).code == 2
    assert mentions(command("audit", "sets", "imagenetx").err, "imagenet-x")
