"""The authors' dataset of Recalcati et al. as manifests: ``places-facets-t1``, ``places-facets-t2``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from wordnet_splits.base.errors import DataError, OutputError
from wordnet_splits.catalog.lists import FOLDER
from wordnet_splits.exchange.archives.facets_lists import FacetsList, facets_lists, read_facets
from wordnet_splits.exchange.entries import ListEntry
from wordnet_splits.exchange.imported import Imported
from wordnet_splits.exchange.resolve import Resolved, refusal, resolve
from wordnet_splits.exchange.writing_lists import write_list
from wordnet_splits.making import BuildOptions, build_benchmark
from wordnet_splits.recipe import load_recipe
from wordnet_splits.rules import lists_used

FAMILY = "recalcati2023"


def import_facets(path: Path, out: Path, *, options: BuildOptions) -> list[Imported]:
    """Write the lists that the shipped recipes await to ``out/lists``, and what they build beside it.

    The recipes find them there again through the manifests, or through ``WORDNET_SPLITS_LISTS``.

    Raises
    ------
    DataError : not the dataset, or lines that name no image of a known source where ``allow_missing`` is not
        set; see `read_facets`.
    OutputError : the lists are there already.
    """
    resolved_lists = {name: resolve(entries, "facets", {}) for name, entries in read_facets(path).items()}
    for resolved in resolved_lists.values():
        if resolved.unmatched and not options.allow_missing:
            total = len(resolved.images) + len(resolved.unmatched)
            hint = "fetch the dataset again, or leave them out with --allow-missing"
            raise DataError(refusal(resolved.unmatched, total), where=str(path), hint=hint)
    lists = {
        benchmark.name: _lists(benchmark.name, resolved_lists[benchmark.name]) for benchmark in facets_lists()
    }
    files = [out / FOLDER / f"{name}.parquet" for of_one in lists.values() for name in of_one]
    if there := [file for file in files if file.exists()]:
        raise OutputError("is there already", where=str(there[0]), hint="remove it, or give --out")
    try:
        for of_one in lists.values():
            for name, entries in of_one.items():
                write_list(name, entries, path, out)
        return [
            _built(benchmark, sorted(lists[benchmark.name]), resolved_lists[benchmark.name], out, options)
            for benchmark in facets_lists()
        ]
    except BaseException:  # what builds nothing is not to be in the way of the next import
        for file in files:
            file.unlink(missing_ok=True)
        raise


def _lists(name: str, resolved: Resolved) -> dict[str, Sequence[ListEntry]]:
    """Return the images by list; DataError where the recipe names one that has none."""
    recipe = load_recipe(name)
    entries_by_list: dict[str, list[ListEntry]] = defaultdict(list)
    for entry in resolved.images:
        entries_by_list[f"{FAMILY}/{name.removeprefix('places-')}_{entry.split}_{entry.group}"].append(entry)
    list_names = {rule.list_ for group in recipe.group for rule in group.images.values()}
    list_names |= {used for group in recipe.group for used in lists_used(group.classes)}
    if missing := sorted(w for w in list_names if w is not None and w not in entries_by_list):
        _, split, group = missing[0].split("_", 2)
        reason = f"no image of group {group} in the {split} list of {name}"
        raise DataError(reason, hint="one of the files is not whole: fetch the dataset again")
    return dict(entries_by_list)


def _built(
    benchmark: FacetsList, lists: list[str], resolved: Resolved, out: Path, options: BuildOptions
) -> Imported:
    recipe = load_recipe(benchmark.name)
    recipe.remember_folder(out.absolute())
    build = build_benchmark(
        recipe,
        roots=options.roots,
        out=out,
        allow_missing=options.allow_missing,
        progress=options.progress,
    )
    return Imported(
        benchmark.name,
        out / benchmark.name,
        build.manifest,
        lists=lists,
        unmatched=resolved.unmatched,
        problems=build.problems,
        like=benchmark.like,
    )
