"""Names of columns as labels: every reading of a name counts, so that none is taken for another class's."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loaders.harness.models.class_map import Label, LabelSpace, class_map
from loaders.harness.models.column_names import ColumnNames
from wordnet_splits.base.errors import DataError
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.datasets.catalog import catalog_names, load_catalog
from wordnet_splits.datasets.catalog.own_hierarchy import OwnHierarchy
from wordnet_splits.wordnet import taxonomy

CORGI = Label("n02113186", "Cardigan", ("n02113186",))
SWEATER = Label("n02963159", "cardigan", ("n02963159",))
BIRD, MACHINE = Label("n02012849", "crane", ("n02012849",)), Label("n03126707", "crane", ("n03126707",))
SUIT = Label("n03710721", "maillot", ("n03710721",))
PARTRIDGE = Label("n01807496", "partridge", ("n01807496",))
UPPER, LOWER = Label("A", "A"), Label("a", "a")
FOLDER = Label("cardigan", "cardigan")
REFUSED = None


@pytest.mark.parametrize(
    ("label", "names", "column"),
    [
        (CORGI, ["Cardigan, Cardigan Welsh corgi", "cardigan"], 0),  # Hugging Face: all synonyms
        (CORGI, ["Pembroke", "cardigan", "Cardigan Welsh corgi"], REFUSED),  # OpenAI
        (CORGI, ["Cardigan", "cardigan"], REFUSED),  # torchvision
        (CORGI, ["n02113186", "n02963159"], 0),
        (CORGI, ["n02113186", "Cardigan"], REFUSED),
        (CORGI, ["Cardigan (n02113186)", "cardigan (n02963159)"], 0),
        (CORGI, ["Pembroke", "Cardigan"], 1),
        (SWEATER, ["Cardigan, Cardigan Welsh corgi", "cardigan"], 1),
        (SWEATER, ["Cardigan Welsh corgi", "cardigan"], 1),
        (SWEATER, ["Cardigan", "cardigan, sweater"], REFUSED),
        (BIRD, ["crane", "crane"], REFUSED),
        (BIRD, ["crane bird", "construction crane"], REFUSED),
        (MACHINE, ["crane (n02012849)", "crane (n03126707)"], 1),
        (SUIT, ["maillot", "maillot, tank suit"], 1),
        (SUIT, ["maillot", "tank suit"], REFUSED),
        (SUIT, ["maillot, swimwear", "maillot, tank suit, tights"], REFUSED),
        (PARTRIDGE, ["ruffed grouse, partridge, Bonasa umbellus", "partridge"], 1),
        (PARTRIDGE, ["ruffed grouse, partridge", "Partridge"], REFUSED),
        (Label("café", "café"), ["Cafe\u0301", "bar"], 0),
        (UPPER, ["a", "A"], 1),
        (LOWER, ["a", "A"], 0),
        (UPPER, ["a", "b"], 0),
        (FOLDER, ["Cardigan, Cardigan Welsh corgi", "cardigan"], 1),
        (FOLDER, ["Cardigan, Cardigan Welsh corgi", "Cardigan, sweater"], REFUSED),
    ],
)
def test_one_label(label: Label, names: list[str], column: int | None) -> None:
    space = LabelSpace((label,), {})
    for number in range(2):  # the answer does not depend on the order
        turned = names[number:] + names[:number]
        for options in (
            {"classes": turned},
            {"mapping": turned},
            {"mapping": {n: i for i, n in enumerate(turned)}},
        ):
            if isinstance(options.get("mapping"), dict) and len(set(names)) < len(names):
                continue
            if column is REFUSED:
                with pytest.raises(DataError) as refused:
                    class_map(space, len(names), where="there", **options)
                assert refused.value.where == "there"
            else:
                found = class_map(space, len(names), **options)
                assert turned[found.columns[0]] == names[column]


def test_synonyms_are_those_of_the_own_hierarchy(tmp_path: Path) -> None:
    """A node may have the wnid of another synset: n02084071 is WordNet's dog."""
    (tmp_path / "tree.tsv").write_text("child\tparent\nn02084071\tthing\n")
    own = OwnHierarchy(file="tree.tsv").located(tmp_path / "dataset.toml")
    label = Label("mine", "lathe", ("n02084071",), hierarchy=own)
    names = ["dog, domestic dog, Canis familiaris", "lathe"]
    assert class_map(LabelSpace((label,), {}), 2, classes=names).columns == (1,)


@cache
def synonyms() -> tuple[list[str], list[str]]:
    """The classes of ImageNet, and all synonyms of each as Hugging Face's models name it."""
    words = taxonomy.load()
    wnids = [c.class_id for c in load_catalog("imagenet1k")]
    return wnids, [", ".join(lemma.replace("_", " ") for lemma in words.lemmas(wnid)) for wnid in wnids]


VOCABULARY = frozenset(["n02113186", "Cardigan", "n02963159", "cardigan", "maillot", "crane"])


@pytest.mark.parametrize(
    ("label", "names", "column"),
    [
        (CORGI, ["Pembroke", "cardigan", "Cardigan Welsh corgi"], 2),
        (CORGI, ["Cardigan", "cardigan"], 0),
        (CORGI, ["Pembroke", "cardigan"], REFUSED),
        (SWEATER, ["Cardigan", "cardigan, sweater"], 1),
        (SWEATER, ["Cardigan", "sweater"], REFUSED),
        (SUIT, ["maillot", "tank suit"], REFUSED),
        (BIRD, ["crane", "n02012849"], REFUSED),
    ],
)
def test_a_column_with_the_name_of_another_class_is_not_the_label_s(
    label: Label, names: list[str], column: int | None
) -> None:
    found = ColumnNames(list(zip(names, range(len(names)), strict=True)))
    columns = found.columns_of(replace(label, vocabulary=VOCABULARY))
    assert len(columns) != 1 if column is REFUSED else columns == {column}


@pytest.mark.parametrize("style", ["all synonyms", "first synonym", "lower case", "wnids"])
@pytest.mark.parametrize(
    "benchmark", ["openood-imagenet200", "osc-p1", "unknown-imagenet", "openood-imagenet1k"]
)
def test_labels_of_imagenet_get_their_column_or_none(benchmark: str, style: str) -> None:
    wnids, names = synonyms()
    if style == "wnids":
        names = wnids
    elif style != "all synonyms":
        names = [
            name.split(",")[0].lower() if style == "lower case" else name.split(",")[0] for name in names
        ]
    columns = ColumnNames(list(zip(names, range(1000), strict=True)))
    refused = set()
    labels = LabelSpace.of(load_manifest(benchmark).classes).labels
    for label in labels:
        found = [wnids[column] for column in columns.columns_of(label)]
        if len(found) == 1:
            assert found == [label.class_id]
        else:
            refused.add(label.class_id)
    alike = {label.class_id for label in labels} & {"n02012849", "n03126707", "n03710637", "n03710721"}
    expected = {"wnids": set(), "all synonyms": alike - {"n03710637", "n03710721"}, "first synonym": alike}
    if style in expected:
        assert refused == expected[style]
    else:
        assert alike <= refused
        assert len(refused) < 0.02 * len(labels) + 2


@pytest.mark.parametrize("source", [name for name in catalog_names() if name != "imagenet21k"])
def test_a_source_s_own_names_are_matched(source: str) -> None:
    """Those that two of its classes have are refused, and each of the others finds its column."""
    catalog = load_catalog(source)
    ids, names = [c.class_id for c in catalog], [c.name for c in catalog]
    vocabulary = frozenset([*ids, *names])
    by_id, by_name = (ColumnNames([(text, c) for c, text in enumerate(texts)]) for texts in (ids, names))
    for item in catalog:
        label = Label(item.class_id, item.name, item.wnids, vocabulary)
        assert by_id.columns_of(label) == {item.index}
        assert item.index in by_name.columns_of(label)
        assert (by_name.columns_of(label) == {item.index}) == (names.count(item.name) == 1)


@given(data=st.data())
@pytest.mark.fuzz
def test_no_name_is_taken_for_another_class_s(data: st.DataObject) -> None:
    """Of the readings of the classes' names, in any mixture, none leads to a wrong column in silence."""
    wnids, names = synonyms()
    hard = [
        i for i, w in enumerate(wnids) if w in {x.class_id for x in (CORGI, SWEATER, BIRD, MACHINE, SUIT)}
    ]
    chosen = data.draw(st.permutations([*hard, *data.draw(st.lists(st.integers(0, 999), max_size=5))]))
    chosen = list(dict.fromkeys(chosen))
    readings = [
        data.draw(st.sampled_from([names[i], names[i].split(",")[0], names[i].rsplit(", ")[-1], wnids[i]]))
        for i in chosen
    ]
    catalog = load_catalog("imagenet1k")
    columns = ColumnNames(list(zip(readings, range(len(chosen)), strict=True)))
    for number, i in enumerate(chosen):
        label = Label(wnids[i], catalog[wnids[i]].name, (wnids[i],))
        for vocabulary in (label.vocabulary, frozenset(x for c in catalog for x in (c.class_id, c.name))):
            found = columns.columns_of(replace(label, vocabulary=vocabulary))
            assert len(found) != 1 or found == {number}, readings
