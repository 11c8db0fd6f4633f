"""BibTeX: well formed, each key once, nothing left out, nothing guessed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from wordnet_splits.base.errors import UnknownNameError
from wordnet_splits.benchmark.construct import build_benchmark
from wordnet_splits.benchmark.manifest import write_manifest
from wordnet_splits.benchmark.recipe import class_set_names, load_recipe, recipe_names
from wordnet_splits.datasets.sources import source_info, source_names
from wordnet_splits.datasets.sources.info import paper_bibtex, paper_names
from wordnet_splits.hub.attribution import cite_benchmark

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
