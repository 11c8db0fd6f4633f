from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.raising import raises
from tools.facts import inflections
from wordnet_splits.base.errors import UnknownNameError
from wordnet_splits.benchmark.rules.keywords import (
    KINDS,
    abbreviations,
    lemma_index,
    matches,
    stopwords,
    variants,
)
from wordnet_splits.datasets.catalog import load_catalog
from wordnet_splits.wordnet.taxonomy import Taxonomy

KIM_TABLE_4 = [  # (kind of row, name, a variant that the table gives for it)
    ("plural", "cup_cakes", "cup_cake"),
    ("plural", "donuts", "donut"),
    ("plural", "oysters", "oyster"),
    ("plural", "billiards", "billiard"),
    ("plural", "chopsticks", "chopstick"),
    ("plural", "head-phones", "head_phone"),
    ("plural", "badlands", "badland"),
    ("plural", "artists_loft", "artist_loft"),
    ("plural", "butchers_shop", "butcher_shop"),
    ("plural", "childs_room", "child_room"),
    ("spacing", "cup_cakes", "cupcakes"),
    ("spacing", "hot_dog", "hotdog"),
    ("spacing", "chess-board", "chessboard"),
    ("spacing", "dumb-bell", "dumbbell"),
    ("spacing", "head-phones", "headphones"),
    ("spacing", "barndoor", "barn_door"),
    ("abbreviation", "chimp", "chimpanzee"),
    ("apostrophe", "artist_loft", "artist's_loft"),
    ("apostrophe", "butchers_shop", "butcher's_shop"),
    ("apostrophe", "child_room", "child's_room"),
]
SPLIT_IN_TABLE_4 = [("fishpond", {"fish", "pond"}), ("shopfront", {"shop", "front"})]


def texts(name: str, **options: Any) -> set[str]:
    return {keyword.text for keyword in variants(name, **options)}


def reached(name: str, **options: Any) -> set[str]:
    return {match.wnid for match in matches(name, **options)}


WORDS = """child childs artists shop shoes tennis ice cream fishpond chimp cakes hot and of in people light
house 101 T-shirt dog bus glasses knives iris cactus Homer lab"""
words = st.sampled_from(WORDS.split())
names = st.builds(
    lambda parts, gap, qualifier: gap.join(parts) + qualifier,
    st.lists(words, min_size=1, max_size=3),
    st.sampled_from("_- "),
    st.sampled_from(["", "/indoor", "/ocean_deep", "-101"]),
)
kind_sets = st.sets(st.sampled_from(KINDS))


@pytest.mark.parametrize(("kind", "name", "variant"), KIM_TABLE_4)
def test_every_row_of_kims_table_is_made_by_its_kind(kind: str, name: str, variant: str) -> None:
    assert variant in texts(name)
    assert variant not in texts(name, kinds=[k for k in KINDS if k != kind])


@pytest.mark.parametrize(("name", "parts"), SPLIT_IN_TABLE_4)
def test_written_together_is_cut_only_on_request(name: str, parts: set[str]) -> None:
    assert not parts & texts(name)
    assert parts <= texts(name, compounds="split")


def test_cup_cakes_have_the_keywords_of_the_paper() -> None:
    assert {"cup", "cups", "cake", "cakes", "cupcake", "cupcakes"} <= texts("cup_cakes")


def test_a_caltech_name_loses_its_numbers_but_no_word_with_digits() -> None:
    assert texts("251.airplanes-101") == {"airplanes", "airplane"}
    assert texts("038.chimp") == {"chimp", "chimps", "chimpanzee"}
    assert texts("012") == set()
    assert "ak47" in texts("001.ak47")


def test_stop_words_and_single_letters_never_match_alone() -> None:
    assert {"fish_and_chips", "fish", "chips", "chip"} <= texts("fish_and_chips")
    assert not {"and", "ands"} & texts("fish_and_chips")
    assert texts("in") == texts("of the") - {"of_the", "ofthe"} == set()
    assert "t" not in texts("t-shirt")
    assert {"t_shirt", "shirt"} <= texts("t-shirt")


def test_qualifiers_are_keywords_only_when_kept() -> None:
    assert texts("church/outdoor") == {"church", "churches"}
    kept = variants("underwater/ocean_deep", qualifiers="keep")
    assert {k.text for k in kept if k.kind == "qualifiers"} >= {"ocean_deep", "ocean", "deep"}
    assert "underwater" in {k.text for k in kept if k.kind == "name"}


def test_singulars_are_not_made_of_words_that_only_end_in_s() -> None:
    for word in ("gas", "bus", "iris", "cactus", "tennis", "chess", "glass", "ibis", "octopus"):
        assert {t for t in texts(word) if len(t) < len(word)} == set(), word
    assert "glass" in texts("glasses")
    assert "person" in texts("people")
    assert "knife" in texts("knives")


def test_only_the_last_word_of_a_compound_takes_the_plural() -> None:
    assert "cup_cakes" in texts("cup_cake")
    assert "cups_cake" not in texts("cup_cake")
    assert "cups" in texts("cup_cake")  # a word of the name by itself does


def test_a_long_form_stays_whole() -> None:
    found = texts("pub")
    assert "public_house" in found
    assert not {"public", "house"} & found


def test_runs_of_neighbouring_words_are_joined() -> None:
    found = texts("self-propelled-lawn-mower")
    assert {"lawnmower", "lawn_mower"} <= found
    assert "selflawn" not in found


def test_a_keyword_is_called_after_its_plainest_origin() -> None:
    kinds = {k.text: k.kind for k in variants("cup_cakes")}
    assert kinds["cup_cakes"] == "name"
    assert kinds["cup"] == kinds["cakes"] == "tokens"
    assert kinds["cake"] == "plural"
    assert kinds["cupcakes"] == "spacing"


def test_alternatives_after_a_comma_are_names_of_their_own() -> None:
    assert {"tench", "tinca_tinca"} <= texts("tench, Tinca tinca")
    assert "tenchtinca" not in texts("tench, Tinca tinca")


def test_a_keyword_reaches_lemmas_and_their_parts() -> None:
    by_lemma = {m.lemma for m in matches("chihuahua")}
    assert by_lemma == {"chihuahua"}
    hot_dog = matches("hot_dog", match="lemma")
    assert {m.lemma for m in hot_dog if m.keyword == "hot_dog"} == {"hot_dog"}
    assert {"hot_dog", "hot_air_balloon"} <= {m.lemma for m in matches("hot_dog") if m.keyword == "hot"}
    t_shirt = Taxonomy.embedded().from_name("jersey.n.03")
    assert t_shirt in reached("t-shirt", match="lemma")  # WordNet spells it T-shirt


def test_matches_come_in_the_order_of_keywords() -> None:
    found = matches("hot_dog")
    order = [k.text for k in variants("hot_dog")]
    places = [order.index(m.keyword) for m in found]
    assert places == sorted(places)
    assert matches("hot_dog") == found


def test_an_unknown_kind_is_named() -> None:
    with raises(UnknownNameError, naming="plurals", near="plural"):
        variants("dog", kinds=["plurals"])


@given(names)
def test_equal_lemmas_are_among_those_with_the_token(name: str) -> None:
    assert set(matches(name, match="lemma")) <= set(matches(name, match="token"))


@given(names, kind_sets, kind_sets)
def test_more_kinds_never_lose_a_keyword(name: str, some: set[str], others: set[str]) -> None:
    assert texts(name, kinds=some) <= texts(name, kinds=some | others)


@given(names)
def test_switches_only_add(name: str) -> None:
    plain = texts(name)
    assert plain <= texts(name, qualifiers="keep")
    assert plain <= texts(name, compounds="split")
    assert reached(name) <= reached(name, qualifiers="keep", compounds="split")


@given(names)
def test_case_does_not_matter(name: str) -> None:
    assert variants(name) == variants(name.upper()) == variants(name.lower()) == variants(name.title())


@given(st.lists(words, min_size=1, max_size=3))
def test_space_hyphen_and_underscore_are_one(parts: list[str]) -> None:
    assert variants("_".join(parts)) == variants("-".join(parts)) == variants(" ".join(parts))


@given(st.text(max_size=30) | names)
def test_any_text_is_a_name_and_its_keywords_are_unique(name: str) -> None:
    found = variants(name, qualifiers="keep", compounds="split")
    assert len({keyword.text for keyword in found}) == len(found)
    for keyword in found:
        assert len(keyword.text) > 1
        assert keyword.text not in stopwords()
        assert not any(c.isspace() or c == "/" for c in keyword.text)


def test_the_token_index_is_complete() -> None:
    taxonomy = Taxonomy.embedded()
    index = lemma_index(taxonomy)
    assert lemma_index() is index
    for wnid in list(taxonomy)[::997]:
        for lemma in taxonomy.lemmas(wnid):
            key = lemma.lower().replace("-", "_")
            assert wnid in index.senses(key)
            for part in key.split("_"):
                assert key in index.lemmas_reached(part, "token")


def test_abbreviations_are_nouns_and_sorted() -> None:
    taxonomy = Taxonomy.embedded()
    assert list(abbreviations()) == sorted(abbreviations())
    for short, long in abbreviations().items():
        assert taxonomy.senses(long), long
        assert len(short) < len(long)


def test_no_class_name_of_a_catalog_is_a_stop_word() -> None:
    for source in ("cifar100", "food101", "caltech256", "places365", "dtd", "lsun"):
        for item in load_catalog(source):
            assert variants(item.name), item.name


def test_stop_words_leave_content_words_alone() -> None:
    nouns = {"can", "van", "mine", "bar", "well", "will", "saw", "down", "past", "match"}
    assert not nouns & stopwords()
    for a, b in combinations(["and", "of", "with", "the"], 2):
        assert {a, b} <= stopwords()


def test_inflect_is_imported_only_for_words_of_no_shipped_catalog_but_the_largest() -> None:
    code = """if True:
        import sys
        from wordnet_splits.datasets.catalog import catalog_names, load_catalog
        from wordnet_splits.benchmark.rules.keywords import variants
        for source in set(catalog_names()) - {"imagenet21k"}:
            for item in load_catalog(source):
                variants(item.name, qualifiers="keep", compounds="split")
        print("inflect" in sys.modules)
        print([k.text for k in variants("gizmos")], "inflect" in sys.modules)
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["False", "['gizmos', 'gizmo'] True"]


def test_what_is_kept_of_inflect_is_what_it_says() -> None:
    first, *_ = kept = inflections.TABLE.read_text(encoding="utf-8").splitlines()
    if version("inflect") not in first:
        pytest.skip(f"another version of inflect than in: {first}")
    assert kept == inflections.lines()
