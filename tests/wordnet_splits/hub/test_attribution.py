"""Authors, terms and citations of what is published: in the card, CITATION.cff, Croissant and BibTeX."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.raising import raises
from tests.wordnet_splits.benchmark.recipe.test_about import ABOUT, recipe_file
from wordnet_splits.base.errors import ManifestError, UnknownNameError
from wordnet_splits.benchmark.construct import build_benchmark
from wordnet_splits.benchmark.manifest import Manifest, write_manifest
from wordnet_splits.benchmark.manifest.loading import frozen_folders
from wordnet_splits.benchmark.recipe import class_set_names, load_recipe, recipe_names
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.datasets.catalog.declarations import parse_declaration
from wordnet_splits.datasets.sources import source_info, source_names
from wordnet_splits.datasets.sources.by_name import _declared_info, paper_bibtex, paper_names
from wordnet_splits.hub.attribution import (
    citation_cff,
    cite_benchmark,
    front_matter,
)
from wordnet_splits.hub.card import card_of
from wordnet_splits.hub.croissant import croissant_of
from wordnet_splits.hub.release import collect_release
from wordnet_splits.remote import Address

yaml = pytest.importorskip("yaml")
MORE = """doi = "10.5281/zenodo.1234567"
url = "https://example.org/mine"
contact = "ada@example.org"
description = "Digits <b>again</b>."
paper = "On digits"
biases = "One writer."
"""


def written(folder: Path, about: str = ABOUT + MORE, name: str = "mine") -> Manifest:
    manifest = build_benchmark(recipe_file(folder, about, name)).manifest
    return load_manifest(write_manifest(manifest, folder / "build"))


@pytest.mark.parametrize(
    ("about", "absent"),
    [
        ("", "no licence and no authors"),
        ('\n[about]\nlicence = "MIT"\n', "no authors"),
        ('\n[about]\nauthors = [{ name = "A" }]\n', "no licence"),
    ],
)
def test_licence_and_authors_are_asked_for(tmp_path: Path, about: str, absent: str) -> None:
    written(tmp_path, about)
    with raises(ManifestError, where="mine", naming=(absent, "build/mine")):
        collect_release([tmp_path / "build"])


def test_the_licence_of_the_readme_counts(tmp_path: Path) -> None:
    written(tmp_path, '\n[about]\nauthors = [{ name = "A" }]\n')
    (tmp_path / "build" / "README.md").write_text("---\nlicense: mit\n---\n", "utf-8")
    assert collect_release([tmp_path / "build"]).names == ["mine"]


def test_the_card_states_the_constants_of_measures() -> None:
    release = collect_release([frozen_folders()["rungs-cifar100"]])
    assert "- constants of the measures: mean: height 19" in card_of(release, None).splitlines()


def test_the_card(tmp_path: Path) -> None:
    written(tmp_path)
    card = card_of(collect_release([tmp_path / "build"]), Address("org/set"))
    head = yaml.safe_load(card.split("---\n")[1])
    assert head["license"] == "cc-by-4.0"
    assert head["authors"] == [{"name": "Ada Lovelace", "orcid": "0000-0002-1825-0097"}]
    assert head["date_published"] == "2026-11-23"
    for line in (
        "Digits &lt;b&gt;again&lt;/b&gt;.",
        "- by: Ada Lovelace (ORCID 0000-0002-1825-0097)",
        "- licence: CC-BY-4.0",
        "- described in: On digits",
        "- biases: One writer.",
        "- version 1: The first.",
    ):
        assert line in card.splitlines(), line
    assert "zenodo.1234567" in card
    assert "ada@example.org" in card


def test_a_licence_that_the_hub_does_not_know_is_another(tmp_path: Path) -> None:
    lab = '\n[about]\nlicence = "LicenseRef-Our-Lab"\nauthors = [{ name = "A" }]\n'
    metadata = front_matter([written(tmp_path, lab), written(tmp_path, name="other")])
    assert (metadata["license"], metadata["license_name"]) == (["other", "cc-by-4.0"], "our-lab")


def test_citation_cff(tmp_path: Path) -> None:
    mine = written(tmp_path)
    stated = yaml.safe_load(citation_cff([mine], "set", "https://example.org/set"))
    assert stated["authors"] == [
        {"family-names": "Lovelace", "given-names": "Ada", "orcid": "https://orcid.org/0000-0002-1825-0097"}
    ]
    expected = {
        "cff-version": "1.2.0",
        "type": "dataset",
        "version": "1",
        "date-released": "2026-11-23",
        "doi": "10.5281/zenodo.1234567",
        "url": "https://example.org/mine",
        "license": "CC-BY-4.0",
    }
    assert {key: stated[key] for key in expected} == expected
    without_address = written(tmp_path, ABOUT, "plain")
    assert "url" not in yaml.safe_load(citation_cff([without_address], "set", None))
    assert "url" not in json.loads(croissant_of(without_address))
    lab = '\n[about]\nlicence = "LicenseRef-lab"\nauthors = [{ name = "Lab", organisation = true }]\n'
    both = yaml.safe_load(citation_cff([mine, written(tmp_path, lab, "other")], "set", "https://example.org"))
    assert both["title"] == "set"
    assert [author.get("name", "Lovelace") for author in both["authors"]] == ["Lovelace", "Lab"]
    assert [work.get("license") for work in both["references"]] == ["CC-BY-4.0", None]


def test_cite_begins_with_the_benchmark(tmp_path: Path) -> None:
    entries = cite_benchmark(written(tmp_path)).entries
    assert entries[0].cited_for == ["benchmark"]
    assert entries[0].bibtex.startswith("@misc{mine,\n  author  = {Lovelace, Ada},")
    assert "doi     = {10.5281/zenodo.1234567}" in entries[0].bibtex
    with_bibtex = ABOUT + 'paper = "@article{ada, title = {On digits}}"\n'
    entries = cite_benchmark(written(tmp_path, with_bibtex, "other")).entries
    assert [(entry.key, entry.cited_for) for entry in entries[:2]] == [
        ("other", ["benchmark"]),
        ("ada", ["paper"]),
    ]


def test_croissant_and_the_site(tmp_path: Path) -> None:
    from wordnet_splits.explorer.benchmark_pages import index_entry

    mlc = pytest.importorskip("mlcroissant")
    manifest = written(tmp_path)
    described = json.loads(croissant_of(manifest))
    metadata = mlc.Dataset(described).metadata
    assert (list(metadata.issues.errors), list(metadata.issues.warnings)) == ([], [])
    assert described["creator"] == {
        "@type": "sc:Person",
        "name": "Ada Lovelace",
        "url": "https://orcid.org/0000-0002-1825-0097",
    }
    assert described["license"] == "https://spdx.org/licenses/CC-BY-4.0.html"
    assert described["sameAs"] == "https://doi.org/10.5281/zenodo.1234567"
    assert described["url"] == "https://example.org/mine"
    assert described["datePublished"].startswith("2026-11-23")
    assert "changelog" not in described["rai:dataReleaseMaintenancePlan"]
    assert "ada@example.org" in described["rai:dataReleaseMaintenancePlan"]
    (author,) = index_entry(manifest)["about"]["authors"]
    assert (author["name"], author["orcid"]) == ("Ada Lovelace", "0000-0002-1825-0097")


def test_a_declared_dataset_has_it_too() -> None:
    table = {"name": "mypics", "layout": "folders", "catalog": "mypics.tsv", "title": "My pictures"}
    authors = [{"name": "Ada Lovelace"}]
    declared = parse_declaration({**table, "about": {"licence": "MIT", "authors": authors}}, "dataset.toml")
    info = _declared_info(declared)
    assert info.licence == "MIT"
    assert info.bibtex.startswith("@misc{mypics-dataset,\n  author = {Lovelace, Ada},")
    assert 'about = { authors = [{ name = "Ada Lovelace" }], licence = "MIT" }' in declared.as_toml("x.tsv")
    with raises(ValueError, where="dataset.toml", naming="about.licence"):
        parse_declaration({**table, "about": {"licence": "?"}}, "dataset.toml")
    with raises(ValueError, where="dataset.toml", naming=("licence", "about")):
        parse_declaration({**table, "licence": "MIT", "about": {"licence": "MIT"}}, "dataset.toml")


ENTRY = re.compile(r"@(?P<type>[a-z]+)\{(?P<key>[^,\s]+),\n(?P<fields>.*)\n\}", re.DOTALL)
FIELD = re.compile(r"  (?P<name>[a-z]+) += \{(?P<value>.*)\}")
REQUIRED = {  # BibTeX's own, in btxdoc
    "article": {"author", "title", "journal", "year"},
    "inproceedings": {"author", "title", "booktitle", "year"},
    "techreport": {"author", "title", "institution", "year"},
    "misc": {"author", "title", "year"},
}


def fields_of(bibtex: str) -> dict[str, str]:
    entry = ENTRY.fullmatch(bibtex.strip())
    assert entry, bibtex
    fields = {}
    for line in entry["fields"].split(",\n"):
        field = FIELD.fullmatch(line)
        assert field, line
        assert field["value"].count("{") == field["value"].count("}")
        fields[field["name"]] = field["value"]
    assert REQUIRED[entry["type"]] <= fields.keys()
    assert re.fullmatch(r"(18|19|20)\d\d", fields["year"])
    return fields


@pytest.mark.parametrize("name", paper_names())
def test_every_paper_is_well_formed(name):
    fields = fields_of(paper_bibtex(name))
    for author in fields["author"].split(" and "):
        assert re.fullmatch(r"[^,]+, [^,]+", author)
    if "doi" in fields:
        assert re.fullmatch(r"10\.\d{4,9}/\S+", fields["doi"])
    if "eprint" in fields:
        assert re.fullmatch(r"\d{4}\.\d{5}", fields["eprint"])
        assert fields["archiveprefix"] == "arXiv"


@pytest.mark.parametrize("name", source_names())
def test_every_source_is_well_formed(name):
    fields_of(source_info(name).bibtex)


def test_one_key_never_stands_for_two_works():
    titles: dict[str, set[str]] = {}
    for text in [*map(paper_bibtex, paper_names()), *(source_info(n).bibtex for n in source_names())]:
        entry = ENTRY.fullmatch(text.strip())
        assert entry
        titles.setdefault(entry["key"], set()).add(fields_of(text)["title"])
    assert {key: found for key, found in titles.items() if len(found) > 1} == {}


@pytest.mark.parametrize("name", [*recipe_names(), *class_set_names()])
def test_a_shipped_benchmark_cites_its_paper_wordnet_and_all_its_sources_once(name):
    recipe, citation = load_recipe(name), cite_benchmark(name)
    cited_for = [reason for entry in citation.entries for reason in entry.cited_for]
    papers = ["paper"] if recipe.paper else []
    assert sorted(cited_for) == sorted([*papers, "wordnet", *recipe.sources_named, "wordnet-splits"])
    assert citation.unlisted is None
    keys = re.findall(r"^@\w+\{([^,]+),", citation.bibtex, re.MULTILINE)
    assert keys == [entry.key for entry in citation.entries]
    assert len(keys) == len(set(keys))


def test_the_paper_comes_first_and_shared_reports_come_once():
    entries = {e.key: e for e in cite_benchmark("unknown-cifar").entries}
    assert next(iter(entries)) == "kim2023unified"
    assert entries["krizhevsky2009learning"].cited_for == ["cifar100"]
    # Tiny ImageNet is in no group, but a rule goes by its list of classes
    assert entries["le2015tiny"].cited_for == ["tiny-imagenet"]


def test_a_recipe_of_ones_own_may_name_a_paper_not_known_here(tmp_path: Path):
    path = tmp_path / "mine.toml"
    path.write_text('extends = "digits"\nname = "mine"\npaper = "me2026"\n')
    citation = cite_benchmark(path)
    assert citation.unlisted == "me2026"
    assert [e.cited_for for e in citation.entries] == [
        ["wordnet"],
        ["digits"],
        ["gaussian", "uniform"],
        ["wordnet-splits"],
    ]


def test_a_built_manifest_is_cited_by_the_recipe_it_holds(tmp_path: Path):
    folder = write_manifest(build_benchmark("digits").manifest, tmp_path)
    assert cite_benchmark(folder).as_dict() == cite_benchmark("digits").as_dict()


def test_an_unknown_benchmark_is_refused_with_near_names():
    with pytest.raises(UnknownNameError) as error:
        cite_benchmark("unknown-cifer")
    assert "unknown-cifar" in error.value.near
