"""The published figures: what must be equal is, what must differ is explained."""

from __future__ import annotations

import csv

import pytest

from wordnet_splits.benchmark.construct import build_benchmark
from wordnet_splits.benchmark.rules import ClassRule, Context, decide
from wordnet_splits.datasets.catalog import load_catalog
from wordnet_splits.studies.fidelity import fidelity_rows, keyword_switches, published_classes
from wordnet_splits.wordnet.similarity import pairs as similarity
from wordnet_splits.wordnet.taxonomy import load

T = ("T40", "T45", "T50")


@pytest.fixture(scope="module")
def rows():
    return {r.what: r for r in fidelity_rows()}


@pytest.mark.parametrize(
    ("what", "ours"),
    [
        ("Tiny ImageNet classes dropped, any sense", 42),
        ("near candidates of ImageNet-200", 405),
        ("external ImageNet classes", 395),
        *[(f"osc-p1 {g} classes", n) for g, n in (("known", 116), ("negative", 67), ("unknown", 166))],
        *[(f"osc-p2 {g} classes", n) for g, n in (("known", 30), ("negative", 31), ("unknown", 55))],
        *[(f"osc-p3 {g} classes", n) for g, n in (("known", 151), ("negative", 97), ("unknown", 164))],
        *[(f"osc-p{n} classes in another role than in the published list", 0) for n in (1, 2, 3)],
    ],
)
def test_checked_figures(rows, what, ours):
    assert rows[what].ours == ours


@pytest.mark.parametrize(
    ("what", "published", "ours"),
    [
        ("common classes of ImageNet-1K and Places365", 32, 32),
        ("ID classes of ImageNet-1K at T40, our map", 56, 58),
        ("ID classes of ImageNet-1K at T45, our map", 90, 90),
        ("ID classes of ImageNet-1K at T50, our map", 140, 165),
        ("ID classes of ImageNet-1K at T40, first senses", 56, 53),
        ("ID classes of ImageNet-1K at T45, first senses", 90, 99),
        ("ID classes of ImageNet-1K at T50, first senses", 140, 225),
        ("TIN-597: classes of the name of a scene of Places365", None, 21),
        ("TIN-597: scenes of Places365 with the synset of a class", None, 22),
        ("classes that TIN-597 leaves out of the 800", 203, 203),
        ("TIN-597: classes that our ancestry rule drops", 203, 318),
        ("TIN-597: classes dropped by both", None, 193),
        ("ssb-hard: classes overlapping with ImageNet-1K", None, 192),
        *[
            (f"openood-imagenet1k-verified: images of {name}", n, ours)
            for name, n, ours in (
                *(("species", 172, 172), ("ssb-hard", 208, 208), ("inaturalist", 383, 383)),
                *(("places", 153, 153), ("textures", 288, 288), ("openimage-o", 368, 327)),
            )
        ],
        ("openood-imagenet1k-noisy: images of species", 10_000, 10_000),
        ("openood-imagenet1k-noisy: images of places", 10_000, 10_000),
        ("openood-imagenet1k-es: images of imagenet-es", None, 64_000),
    ],
)
def test_other_peoples_sets(rows, what, published, ours):
    assert (rows[what].published, rows[what].ours) == (published, ours)


@pytest.mark.oracle
def test_first_senses_by_nltk_alone(rows, nltk_wordnet):
    """Path, Leacock-Chodorow over its maximum and Wu-Palmer by NLTK, to the first sense of each name."""
    wn = nltk_wordnet
    names = {c.class_id.partition("/")[0] for c in load_catalog("places365")}
    first = {found[0] for name in names if (found := wn.synsets(name, "n"))}
    ids = [c.class_id for c in load_catalog("imagenet1k")][
        ::25
    ]  # NLTK takes a quarter of a millisecond a pair
    synsets = {c: wn.synset_from_pos_and_offset("n", int(c[1:])) for c in ids}
    most = wn.lch_similarity(first_one := next(iter(first)), first_one)

    def mean(x, y):
        lch = wn.lch_similarity(x, y) / most
        return (wn.path_similarity(x, y) + lch + wn.wup_similarity(x, y)) / 3

    theirs = [max(mean(synset, other) for other in first) for synset in synsets.values()]
    ours = similarity.similarity_matrix("mean_nltk", ids, sorted(f"n{s.offset():08d}" for s in first)).max(
        axis=1
    )
    assert ours == pytest.approx(theirs)
    found = [rows[f"ID classes of ImageNet-1K at {t}, first senses, NLTK's Wu-Palmer"].ours for t in T]
    assert found == [53, 95, 215]


@pytest.mark.oracle
def test_precision_and_recall_for_tin597(rows, facts, nltk_wordnet):
    """The ancestry rule by NLTK, over the published list of kept classes."""

    def closure(wnid):
        own = nltk_wordnet.synset_from_pos_and_offset("n", int(wnid[1:]))
        return {own, *(s for path in own.hypernym_paths() for s in path)}

    lines = (facts / "openood/tin597_classes.tsv").read_text().splitlines()
    kept = {wnid for line in lines for wnid in line.split("\t") if wnid[:1] == "n" and wnid[1:].isdigit()}
    assert len(kept) == 597
    tiny = {c.class_id for c in load_catalog("tiny-imagenet")}
    offered = [c.class_id for c in load_catalog("imagenet1k") if c.class_id not in tiny]
    of_cifar = {w for name in ("cifar10", "cifar100") for c in load_catalog(name) for w in c.wnids}
    synsets = {nltk_wordnet.synset_from_pos_and_offset("n", int(w[1:])) for w in of_cifar}
    above = {s for w in of_cifar for s in closure(w)}
    own = {c: nltk_wordnet.synset_from_pos_and_offset("n", int(c[1:])) for c in offered}
    dropped = {c for c in offered if closure(c) & synsets or own[c] in above}
    both = dropped - kept
    assert rows["TIN-597: classes that our ancestry rule drops"].ours == len(dropped)
    assert rows["TIN-597: classes dropped by both"].ours == len(both)
    said = f"precision {len(both) / len(dropped):.3f}, recall {len(both) / 203:.3f}"
    assert said in rows["TIN-597: classes dropped by both"].why


def test_the_sets_of_openood_are_parted_whole(rows):
    for source in ("ssb-hard", "ninco"):
        counts = [row.ours for what, row in rows.items() if what.startswith(f"{source}: ")]
        assert sum(counts) == len(load_catalog(source))


def test_every_difference_has_a_sentence(rows):
    assert all(r.why for r in rows.values() if r.published != r.ours)


def test_the_words_claim_no_more_than_is_so(rows):
    """Our own arithmetic is no published figure, and table 4's examples are not dropped by default."""
    assert rows["near candidates of ImageNet-200"].published is None
    assert "our reading" in rows["Tiny ImageNet classes dropped, any sense"].why
    images = rows["external ImageNet training images"]
    assert (images.published, images.ours) == (485_700, 485_219)
    assert rows["fishpond and shopfront dropped, compounds whole, the default"].ours == 0
    assert rows["fishpond and shopfront dropped, compounds split"].ours == 2
    assert [
        rows[f"{s} classes kept, compounds split"].ours for s in ("food101", "caltech256", "places365")
    ] == [29, 24, 51]
    two = [c.name for c in load_catalog("cifar100") if len(c.wnids) > 1]
    assert two == ["castle", "girl"]


def test_far_counts_are_near_the_published_ones(rows):
    """No tuning: within ten classes of 32, 45 and 82, as PAPERS found for crude variants."""
    for source, published in (("food101", 32), ("caltech256", 45), ("places365", 82)):
        assert abs(rows[f"{source} classes kept as far-OOD"].ours - published) <= 10


@pytest.mark.parametrize("name", ["p1", "p2", "p3"])
def test_protocols_equal_the_published_class_lists(facts, name):
    with (facts / "openset_imagenet" / f"{name}_classes.tsv").open() as file:
        published = {
            r["wnid"]: r["role"] for r in csv.DictReader((x for x in file if x[0] != "#"), delimiter="\t")
        }
    assert published_classes(f"openset-imagenet/{name}_test") == published
    table = build_benchmark(f"osc-{name}").manifest.classes.to_pylist()
    assert {r["class_id"]: r["group"] for r in table if r["group"]} == published


@pytest.mark.parametrize(
    ("name", "counts"),
    [("osc-p1-dag", (118, 72, 179)), ("osc-p2-dag", (31, 32, 60)), ("osc-p3-dag", (162, 104, 173))],
)
def test_protocols_on_the_full_graph(name, counts):
    table = build_benchmark(name).manifest.classes.column("group").to_pylist()
    assert tuple(table.count(g) for g in ("known", "negative", "unknown")) == counts


def test_awaited_trains_have_the_published_sizes():
    groups = [*build_benchmark("osc-p1").manifest.groups, *build_benchmark("osc-p3").manifest.groups]
    awaited = [g for g in groups if g.split == "train"]
    assert [(g.expected, g.actual, g.status) for g in awaited] == [
        (116218, None, "awaiting imagenet1k"),
        (69680, None, "awaiting imagenet1k"),
        (154522, None, "awaiting imagenet1k"),
        (98202, None, "awaiting imagenet1k"),
    ]
    assert all(g.expected == g.published for g in awaited)


def test_the_keyword_rule_under_every_switch() -> None:
    rows = {row.switch: row for row in keyword_switches()}
    counts = {switch: tuple(row.counts().values()) for switch, row in rows.items()}
    # published: 32, 45, 82. These are what the kinds of variants give, and no target: a change is a
    # change of the far sets and needs a new version of the recipe.
    assert counts == {
        "default": (32, 39, 88),
        "qualifiers kept": (32, 39, 76),
        "compounds split": (29, 24, 51),
        "subtree only": (58, 88, 179),
        "without tokens": (76, 74, 222),
        "without plural": (36, 48, 88),
        "without spacing": (32, 39, 89),
        "without apostrophe": (32, 39, 88),
        "without abbreviation": (32, 39, 88),
    }
    assert rows["default"].images["food101"] == 32 * 1000
    for row in rows.values():
        counted = [load_catalog("caltech256").count(c, "all") or 0 for c in row.kept["caltech256"]]
        assert row.images["caltech256"] == sum(counted)


def test_the_table_of_switches_is_that_of_the_rule() -> None:
    rule = {"not": {"keyword_overlap": {"with": "source:imagenet1k", "qualifiers": "keep"}}}
    places = [item.class_id for item in load_catalog("places365")]
    verdicts = decide(ClassRule.model_validate(rule), "places365", places, Context(load()))
    rows = {row.switch: row for row in keyword_switches(["places365"])}
    kept = set(rows["qualifiers kept"].kept["places365"])
    assert kept == {c for c, verdict in verdicts.items() if verdict.accepted}
    assert rows["default"].cell("places365") == "88 (443,564)"
