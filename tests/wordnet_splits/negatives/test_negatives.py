"""Negative words against ID classes and OOD sets: NLTK's graph, NegLabel's list, files, errors."""

from __future__ import annotations

import csv
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.raising import mentions, raises
from tools.facts.published import Published
from wordnet_splits.audit.report import RELATIONS
from wordnet_splits.base.errors import DataError, OutputError
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.datasets.catalog import load_catalog
from wordnet_splits.negatives.ledger import NegativesAudit
from wordnet_splits.negatives.mining import mine_negatives, neglabel_distance
from wordnet_splits.negatives.words import audit_negatives
from wordnet_splits.wordnet.taxonomy import Taxonomy

PAGE = Path(__file__).parents[3] / "docs" / "audits.md"
ANIMALS = Taxonomy.from_edges(
    {
        "thing": [],
        "animal": ["thing"],
        "dog": ["animal"],
        "pug": ["dog"],
        "cat": ["animal"],
        "machine": ["thing"],
        "crane bird": ["animal"],
        "crane machine": ["machine"],
        "drill": ["machine"],
    },
    instances={"Rex": ["dog"], "Cape": ["machine"]},
    lemmas={
        "crane bird": ["crane"],
        "crane machine": ["crane", "hoist"],
        "dog": ["dog", "hound"],
        "pug": ["pug_dog"],
    },
)


@pytest.fixture(scope="module")
def neglabel(tmp_path_factory, facts: Path) -> Path:
    """NegLabel's published words as the table that a user would write."""
    rows = Published(facts / "neglabel/in1k_negatives.tsv").records()
    path = tmp_path_factory.mktemp("neglabel") / "words.tsv"
    lines = [f"{row['kind']}\t{row['word']}" for row in rows]
    path.write_text("\n".join(["# published", "kind\tword", *lines]) + "\n", "utf-8")
    return path


@pytest.fixture(scope="module")
def published(neglabel: Path) -> NegativesAudit:
    """The audit of that list against the OOD sets of OpenOOD's benchmark of ImageNet-1K."""
    return audit_negatives(neglabel, ood=["openood-imagenet1k"])


def folded(name: str) -> str:
    return name.casefold().replace(" ", "_").replace("-", "_")


def relations(words: list[str], known: list[str], **options: Any) -> list[str | None]:
    report = audit_negatives(words, known, ood=[], taxonomy=ANIMALS, **options)
    return [word.relation for word in report.words]


def test_relations_in_a_small_taxonomy():
    words = ["hound", "pug dog", "Rex", "animal", "cat", "hoist", "quark"]
    assert relations(words, ["dog"]) == ["equal", "below", "below", "above", None, None, None]


def test_a_word_of_several_senses_is_read_as_the_first():
    first, second = ANIMALS.senses("crane")
    assert relations(["crane"], [first]) == ["equal"]
    assert relations(["crane"], [second]) == ["namesake"]


def test_the_row_of_a_word_has_the_path_and_the_number_of_related_classes():
    (word,) = audit_negatives(["Rex"], ["dog", "animal"], ood=[], taxonomy=ANIMALS).words
    assert (word.known, word.edges, word.path, word.kin) == ("dog", 1, ("Rex", "dog"), 2)
    (word,) = audit_negatives(["animal"], ["pug"], ood=[], taxonomy=ANIMALS).words
    assert (word.relation, word.path) == ("above", ("animal", "dog", "pug"))


def test_words_of_another_kind_are_compared_by_name_only(tmp_path):
    path = tmp_path / "words.tsv"
    path.write_text("word\tkind\ndog\tadjective\npug dog\tadjective\ncat\tnoun\n")
    report = audit_negatives(path, ["dog"], ood=[], taxonomy=ANIMALS)
    found = [(word.relation, len(word.senses)) for word in report.words]
    assert found == [("namesake", 0), (None, 0), (None, 1)]


def test_a_word_listed_twice_is_judged_by_the_kind_of_each_row(tmp_path):
    path = tmp_path / "words.tsv"
    path.write_text("word\tkind\npug dog\tnoun\npug dog\tadjective\n")
    report = audit_negatives(path, ["dog"], ood=[], taxonomy=ANIMALS)
    assert [(word.relation, len(word.senses)) for word in report.words] == [("below", 1), (None, 0)]
    report.write_clean(tmp_path / "clean.tsv")
    assert (tmp_path / "clean.tsv").read_text() == "word\tkind\npug dog\tadjective\n"


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("words.txt", "word\ndog\n", ["word", "dog"]),  # WordNet has the noun word
        ("words.csv", "word\ndog\n", ["dog"]),
        ("words.txt", "kind\tword\nnoun\tdog\n", ["dog"]),
        ("words.csv", "dog\ncat\n", ["dog", "cat"]),
        ("words.txt", 'the "word"\n"dog\n', ['the "word"', '"dog']),
    ],
)
def test_a_first_line_is_a_header_in_tables_only(tmp_path, name, content, words):
    (tmp_path / name).write_text(content)
    report = audit_negatives(tmp_path / name, ["dog"], ood=[], taxonomy=ANIMALS)
    assert [word.word for word in report.words] == words
    assert [w.word for w in audit_negatives(["word"], ["dog"], ood=[], taxonomy=ANIMALS).words] == ["word"]


def test_neglabels_sentences_are_read_as_their_words(tmp_path, neglabel, published):
    rows = list(csv.DictReader(neglabel.read_text("utf-8").splitlines()[1:], delimiter="\t"))
    sentences = {"noun": "the nice {}", "adjective": "This is a {} photo"}
    path = tmp_path / "selected.txt"
    path.write_text("\n".join(sentences[row["kind"]].format(row["word"]) for row in rows) + "\n", "utf-8")
    report = audit_negatives(path, ood=["openood-imagenet1k"])
    assert (report.counts, report.ood_sets) == (published.counts, published.ood_sets)
    assert Counter(word.kind for word in report.words) == {"noun": 8578, "adjective": 1921}
    few = tmp_path / "few.txt"
    few.write_text("the nice dog\nThis is a red photo\n")
    report = audit_negatives(few, ["dog"], ood=[], taxonomy=ANIMALS)
    report.write_clean(tmp_path / "clean.txt")
    assert [word.relation for word in report.words] == ["equal", None]
    assert (tmp_path / "clean.txt").read_text() == "This is a red photo\n"


@pytest.mark.parametrize("template", ["a photo of a {}.", "itap of {}"])
def test_sentences_of_another_template_are_refused(template):
    words = [template.format(name) for name in ("dog", "cat", "drill", "pug dog", "crane", "hoist") * 2]
    with raises(DataError, naming=12):
        audit_negatives(words, ["dog"], ood=[], taxonomy=ANIMALS)


def test_id_classes_without_a_synset_are_reported():
    report = audit_negatives(["matted", "tench"], "dtd", ood=[])
    assert len(report.known_not_judged) == 3
    assert set(report.known_not_judged) < {item.class_id for item in load_catalog("dtd")}
    assert "compared by name only" in dict(report.summary())["ID classes"]


def test_pictures_that_are_not_counted_are_no_zero():
    (word,) = audit_negatives(["castle"], ood=["ssb-hard"]).rows()
    assert (word["ood_classes"], word["ood_images"]) == ("n03878066", None)


def test_pictures_of_a_source_are_counted_if_those_of_all_its_splits_are_known():
    svhn, cifar = audit_negatives(["six", "bear"], ["dog"], ood=["svhn", "cifar100"]).ood_sets
    assert (svhn.named, svhn.images) == (1, None)  # only the ids of its test split are shipped
    assert (cifar.named_images, cifar.images) == (600, 60_000)


def test_a_file_in_another_folder_is_an_ood_set(tmp_path):
    (tmp_path / "mine.txt").write_text("tench\n", "utf-8")
    (ood_set,) = audit_negatives(["tench"], ["dog"], ood=[str(tmp_path / "mine.txt")]).ood_sets
    assert (ood_set.ood_set, ood_set.named) == ("mine.txt", 1)


def test_an_ood_set_given_twice_counts_once():
    ood = ["openood-imagenet1k:ssb-hard", "ssb-hard", "openood-imagenet1k", "ssb-hard"]
    report = audit_negatives(["agaric", "waffle iron"], ood=ood)
    assert Counter(item.ood_set for item in report.ood_sets).most_common(1)[0][1] == 1
    assert len(report.ood_sets) == 6


@pytest.mark.oracle
def test_the_published_list_as_nltk_reads_it(neglabel, nltk_wordnet):
    known = {wnid for item in load_catalog("imagenet1k") for wnid in item.wnids}
    expected: dict[str, str] = {}
    rows = list(csv.DictReader(neglabel.read_text("utf-8").splitlines()[1:], delimiter="\t"))
    known_synsets = [nltk_wordnet.synset_from_pos_and_offset("n", int(wnid[1:])) for wnid in known]
    above = {h for synset in known_synsets for h, edges in synset.hypernym_distances() if edges}
    for row in rows:
        synsets = nltk_wordnet.synsets(row["word"].replace(" ", "_"), "n") if row["kind"] == "noun" else []
        if not synsets:
            continue
        ancestors = {f"n{h.offset():08d}": edges for h, edges in synsets[0].hypernym_distances()}
        if ancestors.keys() & known:
            expected[row["word"]] = "equal" if f"n{synsets[0].offset():08d}" in known else "below"
        elif synsets[0] in above:
            expected[row["word"]] = "above"
    report = audit_negatives(neglabel, ood=["openood-imagenet1k:ssb-hard"])
    assert {w.word: w.relation for w in report.words if w.relation in ("equal", "below", "above")} == {
        word: relation
        for word, relation in expected.items()
        if not any(w.word == word and w.relation == "namesake" for w in report.words)
    }
    assert Counter(word.kind for word in report.words) == {"noun": 8578, "adjective": 1921}
    (ssb,) = report.ood_sets
    synsets = {
        nltk_wordnet.synset_from_pos_and_offset("n", int(wnid[1:]))
        for item in load_catalog("ssb-hard")
        for wnid in item.wnids
    }
    names = {folded(lemma) for synset in synsets for lemma in synset.lemma_names()}
    named = {row["word"] for row in rows if folded(row["word"]) in names}
    named |= {
        row["word"]
        for row in rows
        if row["kind"] == "noun"
        and nltk_wordnet.synsets(row["word"].replace(" ", "_"), "n")[:1]
        and nltk_wordnet.synsets(row["word"].replace(" ", "_"), "n")[0] in synsets
    }
    assert {word.word for word in report.words if word.names} == named
    assert ssb.words == len(named)
    assert ssb.images == 49_000


def test_the_pictures_of_named_classes_are_those_of_the_manifest(published):
    manifest = load_manifest("openood-imagenet1k", check="none")
    names = [item.ood_set.partition(":")[2] for item in published.ood_sets]
    assert names == ["ssb-hard", "ninco", "inaturalist", "textures", "openimage-o"]
    for item in published.ood_sets:
        table = manifest.images(group=item.ood_set.partition(":")[2])
        counts = Counter(table["class_id"].to_pylist())
        named = {n.class_id for word in published.words for n in word.names if n.ood_set == item.ood_set}
        assert item.named_images == sum(counts[class_id] for class_id in named)
        assert (item.named, item.images) == (len(named), len(table))


def test_usual_ood_sets_are_those_of_benchmarks_with_the_same_id_classes():
    of_imagenet = [item.ood_set for item in audit_negatives(["dog"]).ood_sets]
    assert "openood-imagenet1k:ssb-hard" in of_imagenet
    assert not any(name.startswith(("openood-imagenet200", "unknown-cifar")) for name in of_imagenet)
    digits = audit_negatives(["six"], "digits:digits-0-5").ood_sets
    assert [item.ood_set for item in digits] == ["digits:digits-6-9", "digits:gaussian"]


def test_clean_and_blind_lists_keep_the_other_lines_as_they_are(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("# my words\nhound\n\nhoist\ncat\n")
    report = audit_negatives(path, ["dog"], ood=[], taxonomy=ANIMALS)
    report.write_clean(tmp_path / "clean.txt")
    report.write_without_test_names(tmp_path / "blind.txt")
    assert (tmp_path / "clean.txt").read_text() == "# my words\n\nhoist\ncat\n"
    assert (tmp_path / "blind.txt").read_text() == path.read_text()
    with raises(OutputError, where="words.txt"):
        report.write_clean(path)
    assert report.clean == ("hoist", "cat")


def test_a_cleaned_and_blinded_list_is_clean_and_blind(tmp_path, neglabel, command):
    clean, blind = tmp_path / "clean.tsv", tmp_path / "blind.tsv"
    ood = ("--ood", "openood-imagenet1k")
    comment, header, *lines = neglabel.read_text("utf-8").splitlines()
    few = tmp_path / "few.tsv"
    few.write_text("\n".join([comment, header, *lines[::10]]) + "\n", "utf-8")
    assert command("audit", "negatives", few, *ood, "--clean", clean).code == 1
    assert command("audit", "negatives", clean, *ood, "--blind", blind).code == 1
    finished = command("audit", "negatives", blind, *ood, "--json")
    assert finished.code == 0
    assert finished.json["ok"]
    assert finished.json["counts"]["equal"] == finished.json["counts"]["test"] == 0


def test_the_ledger_as_csv_parquet_json_and_page(tmp_path, command):
    (tmp_path / "words.txt").write_text("castle\nBalmoral Castle\naxolotl\n=cmd()\n")
    arguments = ("audit", "negatives", "words.txt", "--ood", "ssb-hard")
    for name in ("ledger.csv", "ledger.parquet", "ledger.html"):
        assert command(*arguments, "--out", name).code == 1
    rows = list(csv.DictReader((tmp_path / "ledger.csv").read_text().splitlines()))
    assert [row["relation"] for row in rows] == ["namesake", "below", "equal", ""]
    assert not rows[-1]["word"].startswith("=")
    table = pq.read_table(tmp_path / "ledger.parquet")
    words = command(*arguments, "--json").json["words"]
    assert table["word"].to_pylist() == [word["word"] for word in words]
    page = (tmp_path / "ledger.html").read_text("utf-8")
    assert "Balmoral Castle" in page
    assert "=cmd()" not in page  # neither related nor a name
    pytest.importorskip("matplotlib")
    assert command(*arguments, "--plot", "named.svg").code == 1
    assert "ssb-hard" in (tmp_path / "named.svg").read_text("utf-8")
    text = command(*arguments).out
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["audit", "negatives", "absent.txt"], "absent.txt"),
        (["audit", "negatives", "empty.txt"], ()),
        (["audit", "negatives", "words.txt", "--known", "imagenet1"], "imagenet1k"),
        (["audit", "negatives", "words.txt", "--ood", "ssb-hart"], "ssb-hard"),
        (["audit", "negatives", "words.txt", "--out", "ledger.xlsx"], "ledger.csv"),
        (["audit", "negatives", "table.tsv", "--column", "wrd"], "word"),
        (["audit", "negatives", "names.csv"], ("word", "names.csv")),
        (["audit", "negatives", "words.txt", "--clean", "words.txt"], "words.txt"),
        (["audit", "negatives", "names.csv", "--out", "./names.csv"], "names.csv"),
        (["audit", "list", "names.csv", "--out", "./names.csv"], "names.csv"),
        (["audit", "negatives", "words.txt", "--clean", "n.txt", "--blind", "n.txt"], ()),
        (["audit", "negatives", "words.txt", "--known", "gaussian"], ()),
        (["audit", "mine-negatives", "--out", "n.txt", "--known", "gaussian"], ()),
        (["audit", "negatives", "words.txt", "--known", "unknown-cifar"], "unknown-cifar"),
        (["audit", "negatives", "ragged.tsv"], ("ragged.tsv:3", "2")),
        (["audit", "negatives", "semicolons.txt"], ()),
        (["audit", "negatives", "blank.tsv"], "blank.tsv:3"),
        (["audit", "negatives", "quote.tsv"], "quote.tsv:2"),
        (["audit", "negatives", "words.txt", "--ood", "words.txt", "--ood", "a/words.txt"], ()),
        (["audit", "mine-negatives", "--out", "n.txt", "--margin", "0"], ()),
        (["audit", "mine-negatives", "--out", "n.txt", "--count", "0"], ()),
        (["audit", "mine-negatives", "--out", "n.txt", "--margin", "30", "--count", "9"], ()),
        (["audit", "mine-negatives", "--out", "a", "--margin", "30", "--count", "9"], ()),
        (["audit", "mine-negatives", "--out", "n.txt", "--below", "artifcat"], "artifact"),
    ],
)
def test_bad_input_is_one_line(tmp_path, command, arguments, expected):
    (tmp_path / "empty.txt").write_text("# nothing\n")
    (tmp_path / "words.txt").write_text("castle\n")
    (tmp_path / "names.csv").write_text("name,kind\ncastle,noun\n")
    (tmp_path / "table.tsv").write_text("word\tkind\ncastle\tnoun\n")
    (tmp_path / "ragged.tsv").write_text("word\tkind\ncastle\tnoun\ncat\n")
    (tmp_path / "semicolons.txt").write_text("word;kind\ncastle;noun\n")
    (tmp_path / "blank.tsv").write_text("word\tkind\ncastle\tnoun\n\tnoun\n")
    (tmp_path / "quote.tsv").write_text('word\tkind\n"castle\tnoun\ncat\tnoun\n')
    (tmp_path / "a").mkdir()
    (tmp_path / "a/words.txt").write_text("cat\n")
    assert mentions(command(*arguments).error, expected)
    assert (tmp_path / "words.txt").read_text() == "castle\n"
    assert (tmp_path / "names.csv").read_text() == "name,kind\ncastle,noun\n"
    assert not (tmp_path / "n.txt").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["audit", "mine-negatives", "--known", "cifar10", "--margin", "12", "--out"],
        ["audit", "negatives", "words.txt", "--clean"],
        ["audit", "negatives", "words.txt", "--blind"],
    ],
)
def test_a_list_that_is_there_is_not_overwritten(tmp_path, command, arguments):
    (tmp_path / "words.txt").write_text("castle\n")
    (tmp_path / "mine.txt").write_text("my own work\n")
    assert command(*arguments, "mine.txt").error.startswith("error: mine.txt: ")
    assert (tmp_path / "mine.txt").read_text() == "my own work\n"
    assert command(*arguments, "new.txt").code < 2
    assert (tmp_path / "new.txt").exists()


def test_mined_words_are_counted_in_json(tmp_path, command):
    arguments = ["--known", "cifar10", "--margin", "12", "--count", "3", "--out", "words.txt"]
    done = command("audit", "mine-negatives", *arguments, "--json")
    assert (done.code, done.json) == (0, {"words": 3, "out": "words.txt"})
    assert len((tmp_path / "words.txt").read_text().splitlines()) == 3


def test_mined_words_keep_the_margin_and_name_nothing():
    options: Any = {"below": "thing", "taxonomy": ANIMALS}
    words = mine_negatives(["dog"], margin=3, **options)
    assert sorted(words) == ["drill", "hoist", "machine"]
    assert words[-1] == "machine"  # 3 edges, the others 4
    assert sorted(mine_negatives(["dog"], margin=4, **options)) == ["drill", "hoist"]
    known = [ANIMALS.senses("crane")[1]]
    assert "crane" not in mine_negatives(known, margin=1, **options)
    assert "cape" not in words  # an instance


def test_mined_words_of_imagenet_are_reproducible_clean_and_blind():
    words = mine_negatives(margin=8, count=500, blind=["ssb-hard"])
    assert words == mine_negatives(margin=8, count=500, blind=["ssb-hard"])
    assert audit_negatives(words, ood=["ssb-hard"]).ok
    assert words != mine_negatives(margin=8, count=500, blind=["ssb-hard"], seed=1)


def test_neglabel_distance_is_the_percentile_of_cosine_distances():
    rng = np.random.default_rng(0)
    words, names = rng.normal(size=(7, 5)), rng.normal(size=(40, 5))
    for row, value in zip(words, neglabel_distance(words, names, 5), strict=True):
        cosines = [row @ name / (np.linalg.norm(row) * np.linalg.norm(name)) for name in names]
        assert value == pytest.approx(1 - np.quantile(cosines, 0.95))
    halves = np.full((2, 512), 20, np.float16)  # the squares sum to more than 65,504
    assert neglabel_distance(halves, halves[:1]) == pytest.approx([0, 0])


def test_an_encoder_orders_the_candidates():
    vectors = {"drill": [0.0, 1.0], "machine": [0.6, 0.8], "dog": [1.0, 0.0]}

    def embed(words):
        return np.array([vectors.get(word, [0.9, 0.1]) for word in words])

    words = mine_negatives(["dog"], margin=3, below="thing", embed=embed, taxonomy=ANIMALS)
    assert words[:2] == ["drill", "machine"]  # then hoist


ENCODERS = {
    "that fails": lambda words: 1 / 0,
    "that ends the program": lambda words: sys.exit(3),
    "that cannot be called": "clip",
    "of other rows": lambda words: np.ones((2, 3)),
    "of one number": lambda words: 1.0,
    "of rows of several lengths": lambda words: [[1.0] * (n + 1) for n in range(len(words))],
    "of text": lambda words: np.array([[word, word] for word in words]),
    "of complex numbers": lambda words: np.ones((len(words), 3)) * 1j,
    "of objects": lambda words: np.array([[None, word] for word in words]),
    "of no number": lambda words: np.ones((len(words), 0)),
    "of NaN": lambda words: np.full((len(words), 3), np.nan),
    "of zeros": lambda words: np.zeros((len(words), 3)),
    "of another length for the ID names": lambda words: np.ones((len(words), min(len(words), 2))),
}


@pytest.mark.parametrize("kind", ENCODERS)
def test_encoders_that_fail_or_give_no_direction_are_refused(kind):
    with pytest.raises(DataError) as error:
        mine_negatives(["dog"], margin=3, below="thing", taxonomy=ANIMALS, embed=ENCODERS[kind])
    assert error.value.where == "embed"


def test_one_ood_set_needs_no_list():
    assert audit_negatives(["cat"], ood="ssb-hard") == audit_negatives(["cat"], ood=["ssb-hard"])


def test_the_page_has_the_figures_of_the_published_list(published):
    page = PAGE.read_text("utf-8")
    for relation in RELATIONS:
        assert f"| {relation} | {published.counts[relation]} |" in page
    for item in published.ood_sets:
        counts = (item.named, item.classes, item.first_sense, item.words, item.named_images, item.images)
        assert f"| {' | '.join(f'{n:,}' for n in counts)} |" in page
    species = [w for w in published.words if w.relation == "below" and w.word.startswith("cortinarius")]
    assert len(species) == 8


def test_a_percentile_out_of_range_is_refused():
    with raises(DataError, naming="percentile"):
        mine_negatives(["dog"], taxonomy=ANIMALS, percentile=101)


def test_errors_of_the_functions():
    with raises(DataError, where="list"):
        audit_negatives([])
    with raises(DataError, where="list"):
        audit_negatives(["cat", 3])
    assert json.dumps(audit_negatives(["cat"], ["dog"], ood=[], taxonomy=ANIMALS).as_dict())
