"""Every public object prints in twenty lines at most, whatever it holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from torch import nn

import wordnet_splits as ws
from loaders.harness import Results, evaluate, load_model
from loaders.harness.comparison import compare, nearness
from wordnet_splits.base.tabular import PAGE_WIDTH, SHOWN_ROWS

NETWORK = nn.Sequential(nn.Flatten(), nn.Linear(192, 6))
OBJECTS: Mapping[str, Callable[[Results], Any]] = {
    "Results": lambda results: results,
    "Summary": lambda results: results.summary(),
    "Comparison": lambda results: compare(results, bootstrap=20),
    "Nearness": nearness,
    "Model": lambda _: load_model(NETWORK),
    "Manifest": lambda _: ws.load_manifest("unknown-imagenet"),
    "Build": lambda _: ws.build_benchmark("digits"),
    "Recipe": lambda _: ws.load_recipe("rungs-imagenet"),
    "Catalog": lambda _: ws.load_catalog("imagenet21k"),
    "Taxonomy": lambda _: ws.Taxonomy.embedded(),
    "Listing": lambda _: ws.list_benchmarks(),
    "Diagnosis": lambda _: ws.check_sources(),
    "Explanation": lambda _: ws.explain_benchmark("unknown-imagenet"),
    "Distances": lambda _: ws.distance("unknown-imagenet"),
    "BenchmarkPower": lambda _: ws.power("digits"),
    "Citation": lambda _: ws.cite_benchmark("rungs-imagenet"),
    "SourceInfo": lambda _: ws.source_info("imagenet1k"),
    "Similarity": lambda _: ws.compare_synsets("dog", "cat"),
    "SynsetSearch": lambda _: ws.find_synsets("dog"),
    "Records": lambda _: ws.check_catalogs(),
    "Proposals": lambda _: ws.propose_synsets(["crane", "maillot"]),
}


@pytest.fixture(scope="module")
def results() -> Results:
    return evaluate(NETWORK, "digits", "msp,energy", device="cpu")


@pytest.mark.parametrize("name", OBJECTS)
def test_an_object_prints_its_own_name_or_rows_in_twenty_lines(name: str, results: Results) -> None:
    made = OBJECTS[name](results)
    assert type(made).__name__ == name
    lines = repr(made).splitlines()
    assert 1 <= len(lines) <= SHOWN_ROWS
    assert len(repr(made)) <= SHOWN_ROWS * (PAGE_WIDTH + 1)
    assert " object at 0x" not in lines[0]
