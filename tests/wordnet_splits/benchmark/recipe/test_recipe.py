"""Recipes: the syntax, variants, and errors with the line and the nearest right key."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest

from tests.raising import mentions, raises
from wordnet_splits.base.errors import RecipeError, SplitsError, TaxonomyError, UnknownNameError, unknown
from wordnet_splits.benchmark.construct import build_benchmark
from wordnet_splits.benchmark.recipe import class_set_names, load_recipe, recipe_names
from wordnet_splits.benchmark.recipe.loading import lines_below, most_specific

RECIPE = """\
schema = 1
name = "mine"

[[group]]
name = "known"
role = "id"
source = "digits"
classes = { listed = ["0", "1"] }
images = { test = { from = "all", all = true } }

[[group]]
name = "unknown"
role = "near"
source = "digits"
classes = { rest = true }
images = { test = { from = "all", all = true } }
"""


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", [*recipe_names(), *class_set_names()])
def test_shipped_recipes_are_valid_and_named_as_their_files(name):
    assert load_recipe(name).name == name


def test_the_draw_is_the_name_unless_given(tmp_path):
    assert load_recipe(write(tmp_path, RECIPE)).draw == "mine"


def test_variants_share_the_draw_and_replace_groups_in_place():
    base, variant = load_recipe("unknown-cifar"), load_recipe("unknown-cifar-tinyval")
    assert variant.draw == base.draw == "unknown-cifar"
    assert [g.name for g in variant.group] == [g.name for g in base.group]
    assert variant.group[1].source == "tiny-imagenet"


def test_drop_and_append(tmp_path):
    text = """\
extends = "digits"
name = "mine"
drop = ["uniform"]
[[group]]
name = "more"
role = "far"
source = "uniform"
noise = { shape = [8, 8, 3] }
classes = { rest = true }
images = { test = { generate = 5 } }
"""
    assert [g.name for g in load_recipe(write(tmp_path, text)).group] == [
        "digits-0-5",
        "digits-6-9",
        "gaussian",
        "more",
    ]


REST, ALL = "{ rest = true }", '{ test = { from = "all", all = true } }'
IMAGES = '{ from = "all", all = true } }\n\n'
LEAK = 'kind = "class"\na = "group:known"\nb = "group:unknwn"\ncount = 1\nreason = "r"\n'


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ('role = "near"', 'rolle = "near"', 13, "'role'"),
        (f"classes = {REST}", "classes = { rst = true }", 15, "'rest'"),
        (IMAGES, '{ form = "all", all = true } }\n\n', 9, "'from'"),
        ("schema = 1", "schema = 2", 1, "schema"),
        ('name = "mine"', 'name = "x', 2, ""),
        ('source = "digits"\nclasses = { rest', "classes = { rest", 11, "'source'"),
        ('source = "digits"', 'source = "digit"', None, ("group 'known'", "digits")),
        ('role = "near"', 'role = "nearby"', 13, "near"),
        ('name = "unknown"', 'name = "Unknown"', 12, "group.1.name"),
        ('name = "unknown"', 'name = "known"', None, "'known'"),
        (IMAGES, '{ from = "all", all = true, rest = true } }\n\n', 9, "from"),
        (IMAGES, "{ generate = 5 } }\n\n", 4, "noise"),
        (IMAGES, "{ from = [], all = true } }\n\n", 9, "from"),
        (IMAGES, '{ from = "all", rest = 1 } }\n\n', 9, "true"),
        (IMAGES, '{ from = "all", per_class = "3" } }\n\n', 9, "per_class"),
        (IMAGES, '{ list = "openset-imagenet/p3_vl" } }\n\n', None, "openset-imagenet/p3_val"),
        (IMAGES, f"{IMAGES}[[known_leak]]\n{LEAK}", None, ("known_leak", "group:unknown")),
        ('source = "digits"\n', 'source = "digits"\nview = "fixx"\n', None, "'fix'"),
        (f"classes = {REST}", "classes = { draw = 2 }", 15, "rest"),
        (f"classes = {REST}", "classes = { rest = 1 }", 15, "true"),
        (f"classes = {REST}", "classes = {}", 15, "similarity"),
        (f"classes = {REST}", f"classes = {{ any = [{', '.join([REST] * 2000)}] }}", 15, "1000"),
        (f"classes = {REST}", "classes = " + "{ not = " * 500 + REST + " }" * 500, None, ""),
        ('role = "id"', 'role = "far"', None, "id"),
        (f"classes = {REST}\nimages = {ALL}", f"classes = {REST}", None, "images"),
    ],
)
def test_a_mistake_is_one_line_that_names_place_and_key(
    tmp_path: Path, old: str, new: str, line: int | None, says: str | tuple[str, ...]
) -> None:
    assert old in RECIPE
    with pytest.raises(SplitsError) as error:
        load_recipe(write(tmp_path, RECIPE.replace(old, new, 1)))
    assert "mine.toml" in str(error.value)
    assert "\n" not in str(error.value)
    assert mentions(str(error.value), says)
    if line is not None:
        assert f"line {line}" in str(error.value)


def test_an_unknown_benchmark_offers_the_nearest():
    with raises(UnknownNameError, near="unknown-cifar"):
        load_recipe("unknown-cifr")


def test_a_file_that_is_not_there(tmp_path):
    with raises(RecipeError, where="none.toml"):
        load_recipe(tmp_path / "none.toml")


def test_a_variant_of_a_variant_is_refused(tmp_path):
    text = 'extends = "unknown-cifar-near4000"\nname = "mine"\n'
    with raises(RecipeError, where="mine.toml"):
        load_recipe(write(tmp_path, text))


def test_thousands_of_groups_and_terabytes_of_noise_are_refused(tmp_path):
    head, _, group = RECIPE.partition('[[group]]\nname = "unknown"')
    many = head + "".join(f'[[group]]\nname = "g{n}"{group}' for n in range(3000))
    with raises(RecipeError, where="mine.toml, line 4", naming="100"):
        load_recipe(write(tmp_path, many))
    noise = RECIPE.replace(IMAGES, "{ generate = 100000 } }\nnoise = { shape = [4096, 4096, 3] }\n\n", 1)
    with raises(RecipeError, where="mine.toml, line 4", naming=("4,687", "5")):
        load_recipe(write(tmp_path, noise))


def test_a_recipe_that_is_parsed_into_gigabytes_is_refused(tmp_path):
    with raises(RecipeError, where="mine.toml", naming="4,194,304"):
        load_recipe(write(tmp_path, RECIPE + "\n".join(f"k{n} = 1" for n in range(500_000))))


def test_the_rules_of_all_groups_are_found_in_one_pass():
    text = "[[group]]\nname = 'a'\nclasses = 1\nclasses = 2\n[[ group ]]\n\n[[group]]\n[group.classes]\n"
    assert lines_below(text, "group", "classes") == [3, 5, 8]


def test_a_name_of_megabytes_is_cut():
    error = unknown("class", "a" * 1_000_000, ["abc"])
    assert str(error) == f"unknown class '{'a' * 200}'... (known: abc)"


def test_thousands_of_problems_are_not_compared_with_each_other():
    class Problem(dict):
        def __eq__(self, other):
            raise AssertionError("compared, which takes minutes for thousands")

        __hash__ = None

    class Report:
        def errors(self, include_url):
            return [Problem(type="missing", loc=loc) for loc in (("a",), ("b", 0), ("c", 0))]

    assert most_specific(Report())["loc"] == ("b", 0)


@pytest.mark.parametrize(
    "base", ["extends = 5", 'extends = "base.toml"\nname = "mine"', 'extends = ["digits"]', 'extends = ""']
)
def test_a_malformed_base_is_one_line(tmp_path, monkeypatch, base):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "base.toml").write_text('schema = 1\nname = "base"\ngroup = [1, { role = "id" }]\n')
    with pytest.raises(SplitsError) as error:
        load_recipe(write(tmp_path, base + "\n"))
    assert "\n" not in str(error.value)


def test_an_error_of_a_rule_says_what_it_saw(tmp_path):
    rule = 'classes = { similarity = { to = "group:known", measure = "path", above = 2.0 } }'
    with pytest.raises(RecipeError) as error:
        build_benchmark(write(tmp_path, RECIPE.replace("classes = { rest = true }", rule)))
    assert "group unknown" in str(error.value)
    assert mentions(str(error.value), "8")


@pytest.mark.parametrize("operator", ["below_parent_of", "shares_parent_with"])
def test_a_rule_about_parents_that_takes_no_class_names_them_and_its_line(tmp_path, operator):
    known = RECIPE.replace('source = "digits"', 'source = "cifar10"', 1).replace('"0", "1"', '"dog"')
    rule = f'classes = {{ {operator} = "group:known" }}'
    with pytest.raises(RecipeError) as error:
        build_benchmark(
            write(tmp_path, known.replace('"all"', '"test"', 1).replace("classes = { rest = true }", rule))
        )
    said = f"mine.toml, line 15: group unknown: the rule takes no class at all: `{operator}` rejected"
    assert said in str(error.value)
    parents = "canine.n.02 (n02083346)", "domestic_animal.n.01 (n01317541)"
    assert mentions(str(error.value), parents[1], parents[0], "group:known")


@pytest.mark.parametrize("name", ["digits", "unknown-cifar-tinyval"])
def test_a_recipe_remembers_where_each_group_is_declared(name):
    recipe = load_recipe(name)
    for group in recipe.group:
        found = re.fullmatch(rf"(\S+).toml, line (\d+): group {group.name}", recipe.location(group.name))
        assert found
        path = files("wordnet_splits") / "data" / "recipes" / f"{found[1]}.toml"
        lines = path.read_text(encoding="utf-8").splitlines()
        assert lines[int(found[2]) - 1].startswith(("classes = ", "[group.classes]"))


def test_where_a_recipe_was_read_makes_no_other_recipe(tmp_path):
    assert load_recipe(write(tmp_path, RECIPE)) == load_recipe(write(tmp_path, RECIPE))
    built = build_benchmark("digits").manifest
    assert load_recipe(built) == load_recipe("digits")
    assert load_recipe(built).location("digits-0-5") == "digits: group digits-0-5"


def test_a_class_listed_that_an_earlier_group_took_is_refused(tmp_path):
    text = RECIPE.replace("classes = { rest = true }", 'classes = { listed = ["1", "2"] }')
    with raises(RecipeError, where="mine.toml, line 15: group unknown", naming="1"):
        build_benchmark(write(tmp_path, text))


def test_names_stand_wherever_a_wnid_does(tmp_path):
    def groups(listed: str, roots: str) -> set[tuple[str, str]]:
        text = RECIPE.replace("digits", "imagenet1k").replace('["0", "1"]', listed)
        text = text.replace("classes = { rest = true }", f"classes = {{ subtree = {roots} }}")
        rows = build_benchmark(
            write(tmp_path, text.replace('from = "all"', 'from = "val"'))
        ).manifest.classes.to_pylist()
        return {(r["group"], r["class_id"]) for r in rows if r["group"]}

    by_wnid = groups('["n01440764"]', '["n02084071"]')
    assert groups('["tench.n.01"]', '["dog.n.01"]') == groups('["tench"]', '["dog"]') == by_wnid
    with raises(TaxonomyError, where="mine.toml, line 15: group unknown", near="artifact.n.01"):
        groups('["tench"]', '["artifactt"]')
