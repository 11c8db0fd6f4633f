"""The commands on meanings, as a user meets them: explain, similarity, tree, catalog, fidelity."""

from __future__ import annotations

import csv
import functools
import io
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

from tests.raising import mentions, raises
from tests.wordnet_splits.command import Command
from tests.wordnet_splits.recipes import FAR, KNOWN, group, write_recipe
from wordnet_splits.base.errors import TaxonomyError
from wordnet_splits.base.terminal.output import print_json
from wordnet_splits.benchmark.construct import build_benchmark
from wordnet_splits.benchmark.explain import explain_class, find_class
from wordnet_splits.benchmark.explain import margin as margin_of
from wordnet_splits.benchmark.manifest.tables import CLASS_SCHEMA
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.benchmark.rules import ClassRule
from wordnet_splits.datasets.catalog import catalog_names, load_catalog
from wordnet_splits.wordnet.similarity import pairs as similarity
from wordnet_splits.wordnet.taxonomy import Taxonomy

DOG, CAT, CARNIVORE, ANIMAL = "n02084071", "n02121620", "n02075296", "n00015388"


@pytest.fixture
def command(capsys, monkeypatch, tmp_path) -> Command:
    return Command(capsys, monkeypatch, tmp_path)


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """The folder of a build of ``unknown-cifar-tinyval``."""
    folder = build_benchmark("unknown-cifar-tinyval", out=tmp_path_factory.mktemp("build")).folder
    assert folder is not None
    return folder


@pytest.fixture(autouse=True, scope="module")
def _manifests_read_once() -> Iterator[None]:
    """Every explanation reads all other benchmarks, which no test here alters."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("wordnet_splits.benchmark.explain.load_manifest", functools.cache(load_manifest))
        yield


# -- explain ---------------------------------------------------------------------------------------------


def test_explain_has_the_class_row_and_the_way_up_and_down(command, built):
    done = command("explain", built, "bicycle", "--json")
    assert (done.code, done.err) == (0, "")
    row = done.json
    assert {*CLASS_SCHEMA.names, "up", "down"} <= row.keys()
    assert (row["source"], row["role"], row["group"], row["label"]) == ("cifar100", "near", "cifar-60", -1)
    via = command("explain", built, "tiny-imagenet:mushroom", "--json").json["via"]
    assert via[0].keys() == {"relation", "wnid", "other_source", "other_class", "value"}
    assert [n["wnid"] for n in row["up"]] == [row["own_wnid"], row["lcs"]]
    assert row["down"][0]["wnid"] == row["lcs"]
    assert row["down"][-1]["wnid"] == row["nearest_wnid"]
    assert len(row["up"]) + len(row["down"]) - 2 == row["distance"]
    assert all(n.keys() == {"wnid", "name", "gloss"} for n in row["up"] + row["down"])


def test_explain_draws_the_path_through_the_lcs_as_a_tree(command, built):
    done = command("explain", built, "bicycle")
    lines = [line.strip() for line in done.out.splitlines()]
    assert lines[0] == "cifar100:bicycle  bicycle"
    assert "role       near (group cifar-60)" in lines
    top = lines.index("wheeled_vehicle.n.01  (least common subsumer)")
    assert lines[top + 1] == "|- bicycle.n.01  <- bicycle"
    assert lines[top + 2].startswith("`- ")
    assert lines[-1].endswith("<- nearest ID class tank")


def test_explain_tells_the_class_with_a_role_before_an_excluded_one(command, built):
    """A source's class of another sense may have the same name: ``sweet pepper``, ``mushroom``."""
    done = command("explain", built, "mushroom", "--json")
    assert done.json["role"] == "near"
    assert {r["source"] for r in done.json["also"]} == {"tiny-imagenet"}
    only = command("explain", built, "tiny-imagenet:mushroom", "--json")
    assert (only.json["source"], only.json["also"]) == ("tiny-imagenet", [])
    assert "sense of the name of the cifar100 class mushroom" in only.json["evidence"]


def test_explain_takes_names_in_any_case_and_a_benchmark_a_build_or_a_recipe(command, tmp_path, built):
    assert command("explain", built, "AQUARIUM FISH", "--json").json["class_id"] == "aquarium_fish"
    recipe = write_recipe(tmp_path, KNOWN, FAR)
    row = command("explain", recipe, "banded", "--json").json
    assert (row["role"], row["group"]) == ("far", "far")
    assert (row["nearest_id"], row["nearest_name"]) == ("0", "zero")
    assert command("explain", "digits", "7").out.startswith(
        "digits:7  seven\n  role       near (group digits-6-9)"
    )
    excluded = command("explain", recipe, "dtd:zigzagged", "--json").json
    assert (excluded["role"], excluded["group"], excluded["label"]) == ("excluded", "", -1)


def test_explain_tells_glosses_margin_what_would_change_and_the_roles_elsewhere(command):
    row = command("explain", "unknown-imagenet", "axolotl.n.01", "--json").json
    assert row["gloss"].startswith("larval salamander")
    assert row["nearest_gloss"] == Taxonomy.embedded().gloss(row["nearest_wnid"])
    draw = next(v["value"] for v in row["via"] if v["relation"] == "draw")
    assert row["margin"] == f"selected with {200 - draw:.0f} ranks to spare"
    assert row["change"] == f"would not be near in a draw of fewer than {draw:.0f} classes"
    shark = command("explain", "unknown-cifar", "shark", "--json").json
    assert shark["change"] == "would not be id with another seed (rank 1)"
    elsewhere = {o["benchmark"]: o["role"] for o in row["elsewhere"]}
    assert elsewhere["unknown-imagenet-placesval"] == "near"
    assert elsewhere["osc-p1"] == "excluded"
    assert "unknown-imagenet" not in elsewhere
    text = command("explain", "unknown-imagenet", "axolotl").out
    for word in ("margin ", "change ", "elsewhere ", row["gloss"], row["nearest_gloss"]):
        assert f"  {word}" in text


@pytest.mark.parametrize(
    ("benchmark", "name", "margin", "change"),
    [
        (
            "digits",
            "7",
            "1 edge from digit (n13741022)",
            "would not be near without digit (n13741022) in the rule",
        ),
        ("digits", "3", "none: it is listed by name", "if removed from the list"),
        ("osc-p2", "tench", "edges from ungulate", "if the rule named its synset, or one above"),
        (
            "osc-p2",
            "Airedale",
            "position 30 of the sorted classes below hunting dog",
            "with more or fewer classes",
        ),
        (
            "unknown-imagenet",
            "caltech256:american-flag",
            "its keywords match 32 related synsets",
            "with another name",
        ),
        (
            "unknown-imagenet",
            "tench",
            "not selected by 32 ranks",
            "would not be excluded in a draw of 232 classes or more",
        ),
        (
            "unknown-cifar",
            "cifar100:mouse",
            "no earlier group takes it; 4 edges",
            "if an earlier group took it",
        ),
        (
            "unknown-cifar",
            "lsun:bedroom",
            "the rule does not match it; 5 edges to ID",
            "with a rule that matches it",
        ),
    ],
)
def test_the_margin_is_that_of_the_rule(command, benchmark, name, margin, change):
    row = command("explain", benchmark, name, "--json").json
    assert margin in row["margin"]
    assert change in row["change"]


@pytest.mark.parametrize(
    ("rule", "score", "margin"),
    [
        (
            {"similarity": {"to": "group:x", "measure": "path", "above": 0.5}},
            0.75,
            "0.25 above the threshold 0.5",
        ),
        (
            {"similarity": {"to": "group:x", "measure": "path", "below": 0.5}},
            0.25,
            "0.25 below the threshold 0.5",
        ),
        (
            {"not": {"all": [{"similarity": {"to": "group:x", "measure": "path", "below": 0.5}}]}},
            1.0,
            "0.5 above",
        ),
    ],
)
def test_the_margin_of_a_bound_is_its_distance(rule, score, margin):
    via = [{"relation": "threshold", "wnid": None, "value": score}]
    row = {"via": via, "role": "near", "distance": 1}
    found, change = margin_of(row, [ClassRule.model_validate(rule)], Taxonomy.embedded())
    assert found.startswith(margin)
    side = "above" if " above" in margin else "of at most"
    assert change == f"would not be near with a threshold {side} {score:g}"


@pytest.mark.parametrize(
    ("kin_too", "change"),
    [(False, "with a threshold above 0.9"), (True, "without dog (n02084071) in the rule")],
)
def test_no_bound_would_take_a_class_that_the_rule_refuses_as_kin(kin_too, change):
    bound = {"similarity": {"to": "group:x", "measure": "path", "below": 0.5}}
    kin = {"not": {"overlaps": "group:x", "relation": "ancestry"}}
    via = [
        {"relation": "ancestor", "wnid": "n02084071", "value": 1.0},
        {"relation": "threshold", "wnid": None, "value": 0.9},
    ]
    row = {"via": via, "role": "excluded", "distance": 1}
    rule = ClassRule.model_validate({"all": [bound, kin]} if kin_too else bound)
    assert margin_of(row, [rule], Taxonomy.embedded())[1] == f"would not be excluded {change}"


@pytest.mark.parametrize("query", ["caf\u00e9 au lait", "cafe\u0301_au_lait", "CAFE\u0301 AU LAIT"])
def test_a_class_is_found_in_every_spelling_of_its_accents(query):
    row = {"source": "drinks", "class_id": "caf\u00e9 au lait", "name": "caf\u00e9 au lait", "wnids": []}
    rows = [{**row, "role": "near"}, {**row, "class_id": "tea", "name": "tea", "role": "far"}]
    manifest = SimpleNamespace(name="mine", classes=pa.Table.from_pylist(rows))
    assert [r["role"] for r in find_class(manifest, query, Taxonomy.embedded())] == ["near"]


def test_explain_all_is_the_table_of_an_appendix(command):
    table = load_manifest("unknown-cifar").classes
    done = command("explain", "unknown-cifar", "--all", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert [r["evidence"] for r in rows] == table.column("evidence").to_pylist()
    assert {"nearest_id_class", "meeting_synset", "edges", "nearer_ood_classes"} <= rows[0].keys()
    markdown = command("explain", "unknown-cifar", "--all").out.splitlines()
    assert len(markdown) == 2 + table.num_rows
    assert all(line.startswith("| ") and line.endswith(" |") for line in markdown[2:])
    latex = command("explain", "unknown-cifar", "--all", "--format", "latex").out
    assert latex.startswith("\\begin{longtable}")
    assert latex.rstrip().endswith("\\end{longtable}")
    assert not re.search(r"[^\\][%#_$]|[^ \\]&", latex.partition("midrule")[2])
    assert command("explain", "digits", "--all", "--json").json["classes"][0]["role"] == "far"


def test_explanations_are_tables_in_python():
    found = explain_class("digits", "seven.n.01")
    assert found.to_table().column("class").to_pylist() == ["7"]
    pytest.importorskip("pandas")
    assert list(found.to_pandas()["role"]) == ["near"]
    assert "<td>seven</td>" in found._repr_html_()


def test_synsets_are_searched_by_a_word(command):
    done = command("wordnet", "search", "crane", "--json").json
    assert done["word"] == "crane"
    names = [s["name"] for s in done["synsets"]]
    assert names[: len(Taxonomy.embedded().senses("crane"))] == [
        Taxonomy.embedded().name(w) for w in Taxonomy.embedded().senses("crane")
    ]
    assert any("whooping crane" in s["words"] for s in done["synsets"])
    assert "constellation" in command("wordnet", "search", "crane").out


def test_names_stand_for_wnids_in_python():
    named = similarity.compare_synsets("dog", "cat.n.01")
    assert named == similarity.compare_synsets(DOG, CAT)
    assert similarity.similarity_matrix("distance", ["dog", CAT]).tolist() == [[0, 4], [4, 0]]
    assert similarity.path_between("dog", "cat") == similarity.path_between(DOG, CAT)
    with raises(TaxonomyError, near="axolotl.n.01"):
        similarity.compare_synsets("axolotle", DOG)


def test_explain_where_there_is_no_path(command, tmp_path):
    noise = group(
        "noise",
        "far",
        "gaussian",
        "{ rest = true }",
        "{ test = { generate = 3 } }",
        "noise = { shape = [4, 4, 1] }",
    )
    recipe = write_recipe(tmp_path, KNOWN, noise)
    done = command("explain", recipe, "gaussian:all", "--json")
    assert (done.code, done.json["up"], done.json["down"], done.json["mean"]) == (0, [], [], None)
    assert "no path: the class has no synset" in command("explain", recipe, "gaussian:all").out


def test_a_benchmark_or_class_that_is_not_there(command, built):
    assert mentions(command("explain", "unknwn-cifar", "dog").error, "unknown-cifar")
    line = command("explain", built, "bycicle").error
    assert mentions(line, "bycicle", "bicycle")
    assert mentions(line, "cifar100")


# -- similarity and tree ---------------------------------------------------------------------------------


def test_similarity_has_the_keys_promised_and_the_values_of_the_library(command):
    done = command("wordnet", "compare", DOG, CAT, "--json")
    assert (done.code, done.err) == (0, "")
    assert list(done.json)[:5] == ["a", "b", "wordnet", "hierarchy", "lcs"]
    measures = {"distance", "path", "wup", "wup_wn", "wup_perl", "lch", "lch_perl", "mean", "mean2"}
    measures |= {"res", "lin", "jcn"}
    assert set(done.json) == {"a", "b", "wordnet", "hierarchy", "lcs", "constants", *measures}
    assert done.json["constants"] == {"height": 19, "information": "structure", "N": 82_115}
    expected = similarity.compare_synsets(DOG, CAT)
    assert {m: done.json[m] for m in measures} == {m: getattr(expected, m) for m in measures}
    assert (done.json["lcs"], done.json["distance"], done.json["path"]) == (CARNIVORE, 4, 1 / (1 + 4))
    assert done.json["lch"] == -math.log((4 + 1) / (2 * 19))
    assert (done.json["wordnet"], done.json["hierarchy"]) == ("3.0", "wordnet")


def test_a_noun_stands_for_its_first_sense_and_says_so(command):
    done = command("wordnet", "compare", "dog", "cat.n.01", "--json")
    assert (done.json["a"], done.json["b"]) == (DOG, CAT)
    assert done.err.startswith("dog: first sense dog.n.01 taken; others: frump.n.01")
    text = command("wordnet", "compare", "hot dog", CAT).out
    assert "least common subsumer" in text


def test_the_tree_projection_is_another_hierarchy(command):
    dag = command("wordnet", "compare", DOG, CAT, "--json").json
    tree = command("wordnet", "compare", DOG, CAT, "--hierarchy", "imagenet-tree", "--json").json
    assert tree["hierarchy"] == "imagenet-tree"
    # in ImageNet's tree a dog is below domestic animal, a cat below feline: they meet at animal only
    assert (dag["lcs"], tree["lcs"]) == (CARNIVORE, ANIMAL)
    assert tree["distance"] > dag["distance"]
    assert tree["path"] == 1 / (1 + tree["distance"])


def test_tree_draws_branches_with_the_classes_of_a_source(command):
    done = command("wordnet", "tree", DOG, "--depth", 1, "--source", "imagenet1k", "--json")
    node = done.json
    assert {"wnid", "name", "synsets", "classes", "children"} <= node.keys()
    wnids = {w for c in load_catalog("imagenet1k") for w in c.wnids}
    below = Taxonomy.embedded().descendants(DOG)
    assert (node["synsets"], node["classes"]) == (len(below), len(below & wnids))
    assert all(child["classes"] > 0 and child["children"] == [] for child in node["children"])
    lines = command("wordnet", "tree", DOG, "--depth", 1, "--source", "imagenet1k").out.splitlines()
    assert lines[0] == f"dog.n.01  {DOG}  {node['classes']} classes"
    assert len(lines) == 1 + len(node["children"])
    assert lines[-1].startswith("`- ")


def test_a_custom_hierarchy_takes_the_place_of_wordnet(command, tmp_path):
    (tmp_path / "tree.tsv").write_text("child\tparent\nbear\ttoy\napple\ttoy\nteddy\tbear\n")
    (tmp_path / "nodes.tsv").write_text("node\tnames\ntoy\t\nbear\tbear|soft toy\napple\t\nteddy\tTeddy\n")
    own = ("--wordnet", tmp_path / "tree.tsv")
    done = command("wordnet", "compare", "soft toy", "apple", *own, "--json").json
    assert (done["a"], done["b"], done["lcs"], done["distance"]) == ("bear", "apple", "toy", 2)
    assert (done["wordnet"], done["hierarchy"]) == ("tree.tsv", "own")
    assert command("wordnet", "search", "soft toys", *own, "--json").json["synsets"][0]["wnid"] == "bear"
    tree = command("wordnet", "tree", *own, "--source", "cifar100", "--json").json
    assert (tree["wnid"], tree["classes"]) == ("toy", 2)  # bear and apple, by their ids
    for given in (("compare", "toy", "unicorn"), ("tree", "--source", "digits"), ("tree", "unicorn")):
        assert mentions(command("wordnet", *given, *own).error, "tree.tsv")
    assert mentions(command("wordnet", "tree", "--hierarchy", "imagenet-tree", *own).error, "tree.tsv")
    assert "--wordnet tree.tsv" in command("wordnet", "tree", "--hierarchy", "tree.tsv").error
    (tmp_path / "tree.tsv").write_text("child\tparent\nbear\ttoy\ntoy\tbear\n")
    assert mentions(command("wordnet", "tree", *own).error, "line 3")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("wordnet", "compare", DOG, "xyzzy"), ("xyzzy", "3.0")),
        (("wordnet", "compare", "n99999999", DOG), ()),
        (("wordnet", "compare", "dog.n.99", "cat"), ("dog", "7")),
        (("wordnet", "compare", DOG, CAT, "--hierarchy", "imagenet"), "imagenet-tree"),
        (("wordnet", "compare", DOG, CAT, "--wordnet", "nowhere"), ()),
        (("wordnet", "compare", DOG, "axolotle"), "axolotl.n.01"),
        (("wordnet", "search", "axolotle"), "axolotl.n.01"),
        (("explain", "digits"), "--all"),
        (("explain", "digits", "7", "--all"), "--all"),
        (("explain", "digits", "--all", "--format", "html"), "html"),
        (("wordnet", "tree", "dog.n.01", "--source", "cifar"), "cifar10"),
        (("catalog", "show", "cifr10"), "cifar10"),
        (("catalog", "check", "imagenet"), "imagenet1k"),
    ],
)
def test_what_is_not_there_is_one_line(command, arguments, said):
    assert mentions(command(*arguments).error, said)


# -- catalog ---------------------------------------------------------------------------------------------


def test_catalog_check_passes_and_lists_what_first_sense_gets_wrong(command):
    done = command("catalog", "check", "--json")
    assert done.code == 0
    assert list(done.json) == ["ok", "sources"]
    reports = {r["source"]: r for r in done.json["sources"]}
    assert set(reports) == set(catalog_names())
    assert all(r["absent"] == [] for r in reports.values())
    wrong = {w["name"]: w["naive"] for w in reports["imagenet1k"]["naive_wrong"]}
    assert wrong["crane"] == Taxonomy.embedded().senses("crane")[0]
    text = command("catalog", "check", "digits").out
    assert "zero: first sense would be n13740168 (a quantity of no importance), ours is n13742358" in text
    assert text.endswith("every synset exists\n")


def test_catalog_check_comes_out_negative_against_another_wordnet(command, tmp_path):
    other = tmp_path / "wordnet"
    other.mkdir()
    (other / "data.noun").write_text("00001740 03 n 01 entity 0 000 | that which is perceived\n")
    (other / "index.noun").write_text("entity n 1 0 1 0 00001740\n")
    (other / "noun.exc").write_text("")
    done = command("catalog", "check", "digits", "--wordnet", other, "--json")
    assert (done.code, done.json["ok"]) == (1, False)
    assert len(done.json["sources"][0]["absent"]) == 10
    shown = command("catalog", "check", "digits", "--wordnet", other)
    assert shown.code == 1
    assert shown.out.endswith("some synsets do not exist\n")
    assert "  7: n13744916 does not exist" in shown.out


def test_catalog_show_has_every_class_in_the_publishers_order(command):
    done = command("catalog", "show", "cifar100", "--json")
    assert done.json["source"] == "cifar100"
    assert [c["class_id"] for c in done.json["classes"]] == [c.class_id for c in load_catalog("cifar100")]
    lines = command("catalog", "show", "cifar100").out.splitlines()
    assert lines[0].split() == ["class_id", "name", "superclass", "wnids", "mapped", "why"]
    ids = [line.split()[0] for line in lines[2:] if not line.startswith(" ")]  # long cells are wrapped
    assert ids == [c.class_id for c in load_catalog("cifar100")]


# -- fidelity --------------------------------------------------------------------------------------------


def test_fidelity_shows_every_figure_and_explains_each_difference(command, monkeypatch):
    from wordnet_splits.studies import fidelity

    for module, function in ((fidelity, "fidelity_rows"), (fidelity, "keyword_switches")):
        monkeypatch.setattr(module, function, functools.cache(getattr(module, function)))  # seconds each
    done = command("audit", "fidelity", "--json")
    assert (done.code, set(done.json)) == (0, {"rows", "switches"})
    rows = {r["what"]: r for r in done.json["rows"]}
    dropped = rows["Tiny ImageNet classes dropped, any sense"]
    assert (dropped["published"], dropped["ours"]) == (42, 42)
    near = rows["near candidates of ImageNet-200"]
    assert (near["published"], near["ours"]) == (None, 405)  # its 406 is our arithmetic
    assert all(r["why"] for r in rows.values() if r["published"] != r["ours"])
    names = [s["switch"] for s in done.json["switches"]]
    assert names[:4] == ["default", "qualifiers kept", "compounds split", "subtree only"]
    text = command("audit", "fidelity").out
    assert "Differences and notes:" in text
    for row in rows.values():
        assert row["why"] in text
    summary = [line.split() for line in command("audit", "fidelity", "--summary").out.splitlines()]
    assert ["palechor2023", "12", "12", "0"] in summary
    assert len(summary) < 10


def test_json_has_null_for_what_is_no_number(capsys):
    print_json({"a": math.nan, "b": [math.inf, 1.5], "c": {"d": -math.inf}})
    found = json.loads(capsys.readouterr().out, parse_constant=lambda name: pytest.fail(name))
    assert found == {"a": None, "b": [None, 1.5], "c": {"d": None}}
