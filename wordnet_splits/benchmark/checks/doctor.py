"""Report of the images at hand: every source under its root, and the missing images of each benchmark.

A bad root is reported in its row and stops nothing else. Of a frozen benchmark ``manifest.json`` and the
class table are read, its fingerprint compared, and each image table's file must exist; `verify` recomputes
the rest.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from wordnet_splits.base.errors import SplitsError
from wordnet_splits.base.jsonable import Jsonable
from wordnet_splits.base.progress import Progress, Silent
from wordnet_splits.base.tabular import Tabular
from wordnet_splits.benchmark.checks.held_images import Readiness, count_held
from wordnet_splits.benchmark.checks.listing import benchmark_folders
from wordnet_splits.benchmark.construct.population import NO_POSITIONS, count_difference, expand
from wordnet_splits.benchmark.manifest import Manifest, Part, read_manifest
from wordnet_splits.benchmark.recipe import Group, ImageRule, Recipe, awaited_lists, load_recipe
from wordnet_splits.datasets.catalog import Catalog, load_catalog
from wordnet_splits.datasets.catalog.declarations import LOCAL, Declaration, Sources, merge_declarations
from wordnet_splits.datasets.catalog.inventory import inventory_splits, list_names, load_inventory, load_list
from wordnet_splits.datasets.sources import Source, open_source, root_variable, source_class, source_names
from wordnet_splits.datasets.sources.roots import Roots, all_roots, roots_file

BUILT_IN, NO_ROOT, BAD_ROOT, COMPLETE, INCOMPLETE = (
    "built in",
    "no root",
    "bad root",
    "complete",
    "incomplete",
)


@dataclass
class SplitState:
    """A publisher's split: number of images under the root, and published; None if unknown."""

    split: str
    held: int | None
    expected: int | None
    difference: str | None = None


@dataclass
class SourceState(Jsonable):
    """A source and its root.

    Attributes
    ----------
    state : built in, no root, bad root, complete or incomplete.
    given_by : ``--root``, the environment variable or the path of ``roots.toml``.
    unexpected : names under the root that are not ids of the source, and how often each.
    free : free bytes on the root's volume.
    ids : the image ids under the root; None without a usable root.
    """

    omitted: ClassVar = ("ids",)

    name: str
    state: str
    root: str | None = None
    given_by: str | None = None
    layout: str | None = None
    order: str | None = None
    splits: list[SplitState] = field(default_factory=list)
    unexpected: dict[str, int] = field(default_factory=dict)
    free: int | None = None
    error: dict[str, object] | None = None
    ids: pa.Array | None = field(default=None, repr=False)

    def split(self, name: str) -> SplitState:
        """Return the state of a publisher's split."""
        return next(s for s in self.splits if s.split == name)


@dataclass
class Awaited:
    """A source or list that images need; ``ready`` if a build with the roots at hand would add them."""

    group: str
    split: str
    needs: str
    ready: bool
    reason: str


@dataclass
class BenchmarkState(Jsonable):
    """A benchmark: whether it is frozen, the sources that it needs, and the images at hand by source."""

    derived: ClassVar = ("complete",)

    name: str
    frozen: bool
    awaits: list[Awaited] = field(default_factory=list)
    pixels: dict[str, str] = field(default_factory=dict)
    ready: Readiness = field(default_factory=Readiness)
    error: dict[str, object] | None = None

    @property
    def complete(self) -> bool:
        """Whether all its images are frozen."""
        return self.frozen and not self.awaits and self.error is None


@dataclass(frozen=True)
class Diagnosis(Jsonable, Tabular):
    """Result of `check_sources`; a row is a publisher's split of a source."""

    sources: Sequence[SourceState]
    benchmarks: Sequence[BenchmarkState]

    def of(self, sources: Collection[str]) -> Diagnosis:
        """Return the part about some sources: these, and the benchmarks that take images from them."""
        users = [b for b in self.benchmarks if not b.pixels.keys().isdisjoint(sources)]
        return Diagnosis([s for s in self.sources if s.name in sources], users)

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return source, its state and root, and the images held and expected of each split."""
        return [
            {"source": s.name, "state": s.state, "root": s.root, "layout": s.layout, **vars(split)}
            for s in self.sources
            for split in s.splits
        ]


Benchmarks = Mapping[str, Manifest | Recipe | SplitsError]
"""Benchmarks by name: the manifest of a frozen one, the recipe of another, or the error of reading it."""


def read_benchmarks(manifests: Path | None = None, names: Sequence[str] = ()) -> Benchmarks:
    """Read the shipped and frozen benchmarks, or ``names``; the image tables stay unread.

    Parameters
    ----------
    manifests, names : as of `list_benchmarks`.
    """
    benchmarks: dict[str, Manifest | Recipe | SplitsError] = {}
    for name, folder in benchmark_folders(manifests, names).items():
        try:
            benchmarks[name] = load_recipe(name) if folder is None else read_manifest(folder, check="classes")
        except SplitsError as error:
            benchmarks[name] = error
    return benchmarks


def carried_declarations(benchmarks: Benchmarks) -> dict[str, Declaration]:
    """Return the datasets that manifests carry, except those that contradict another or cannot be used."""
    declarations: dict[str, Declaration] = {}
    for benchmark in benchmarks.values():
        if isinstance(benchmark, Manifest):
            with contextlib.suppress(SplitsError):
                declarations = dict(Sources.of(declarations, benchmark.declarations).declared)
    return declarations


def check_sources(
    roots: Roots | None = None,
    *,
    benchmarks: Benchmarks | None = None,
    progress: Progress | None = None,
) -> Diagnosis:
    """Scan the root of every source and report the missing images of each benchmark.

    Parameters
    ----------
    roots : folders of sources; the environment and ``roots.toml`` give further roots.
    benchmarks : the benchmarks to report, as of `read_benchmarks`; the shipped and frozen ones by default.

    Raises
    ------
    UnknownNameError, SourceError : a root of an unknown source, or an unreadable ``roots.toml``. Faults of a
        root itself are part of the report.
    """
    options = roots or {}
    benchmarks = read_benchmarks() if benchmarks is None else benchmarks
    datasets = Sources(carried_declarations(benchmarks))
    every_root = all_roots(options, datasets)
    states = {
        n: source_state(n, every_root.get(n), options, datasets, progress) for n in source_names(datasets)
    }
    rows = [_benchmark_state(name, b, states, datasets) for name, b in benchmarks.items()]
    return Diagnosis(list(states.values()), rows)


def source_state(
    name: str,
    root: Path | None,
    options: Roots | None = None,
    datasets: Sources = LOCAL,
    progress: Progress | None = None,
) -> SourceState:
    """Scan the root of a source and compare its counts with the publisher's.

    Parameters
    ----------
    options : the roots given by ``--root``, to report where ``root`` was set.
    """
    cls = source_class(name, datasets)
    expected = cls.expected()
    if not cls.rooted:
        splits = [SplitState(s, n, n) for s, n in expected.items()]
        return SourceState(name, BUILT_IN, layout="embedded", splits=splits)
    splits = [SplitState(s, None, n) for s, n in expected.items()]
    if root is None:
        return SourceState(name, NO_ROOT, splits=splits)
    state = SourceState(name, BAD_ROOT, str(root), _given_by(name, options or {}), splits=splits)
    with contextlib.suppress(OSError):  # opening a root that does not exist gives the error
        state.free = shutil.disk_usage(root).free
    try:
        source = open_source(name, root, datasets)
        state.layout, state.order = source.layout, source.order
        counts, state.ids = _count(source, sum(n or 0 for n in expected.values()), progress or Silent())
    except SplitsError as error:
        state.error = error.as_dict()
        return state
    except OSError as error:
        reason = SplitsError(
            f"the root cannot be read: {error.strerror or error}", where=str(root), hint="check the path"
        )
        state.error = reason.as_dict()
        return state
    for split in state.splits:
        _fill(split, name, counts, cls.catalog())
    state.unexpected = dict(sorted(source.unexpected.items()))
    whole = all(s.held == s.expected for s in state.splits if s.expected is not None)
    state.state = COMPLETE if whole and any(s.held for s in state.splits) else INCOMPLETE
    return state


def _given_by(name: str, options: Roots) -> str:
    if name in options:
        return "--root"
    variable = root_variable(name)
    return variable if os.environ.get(variable) else str(roots_file())


def _count(source: Source, expected: int, progress: Progress) -> tuple[Counter[tuple[str, str]], pa.Array]:
    """Return the number of images by (split, class), and their ids."""
    counts: Counter[tuple[str, str]] = Counter()
    ids = []
    with progress.task(f"scanning {source.name}", expected) as task:
        for batch in source.scan():
            columns = (batch.column(c).to_pylist() for c in ("split", "class_id"))
            counts.update(zip(*columns, strict=True))
            ids.append(batch.column("image_id"))
            task.advance(batch.num_rows)
    return counts, pa.chunked_array(ids, pa.string()).combine_chunks()


def _fill(split: SplitState, source: str, counts: Counter[tuple[str, str]], catalog: Catalog) -> None:
    split.held = sum(n for (name, _), n in counts.items() if name == split.split)
    if split.split not in catalog.splits:
        split.difference = f"how many {split.split} images {source} has is not published"
        return
    of_split = {c: n for (name, c), n in counts.items() if name == split.split}
    split.difference = count_difference(catalog, split.split, of_split)


def _benchmark_state(
    name: str,
    benchmark: Manifest | Recipe | SplitsError,
    states: Mapping[str, SourceState],
    datasets: Sources,
) -> BenchmarkState:
    manifest = benchmark if isinstance(benchmark, Manifest) else None
    state = BenchmarkState(name, frozen=not isinstance(benchmark, Recipe))
    try:
        if isinstance(benchmark, SplitsError):
            raise benchmark
        recipe = load_recipe(benchmark)
        # a state is that of the first dataset of its name
        merge_declarations([datasets.declared, recipe.declarations])
        state.awaits = list(_awaits(recipe, manifest, states))
        state.pixels = {s: _pixels(s, recipe, states) for s in recipe.sources}
        if manifest is not None:
            state.ready = count_held(
                manifest, {name: s.ids for name, s in states.items() if s.ids is not None}
            )
    except SplitsError as error:
        state.error = error.as_dict()
    return state


def _awaits(
    recipe: Recipe, manifest: Manifest | None, states: Mapping[str, SourceState]
) -> Iterator[Awaited]:
    """Yield the sources and lists that the images of each (group, split) need, unless frozen."""
    frozen: frozenset[Part] = frozenset(manifest.parts if manifest else ())
    missing_lists = awaited_lists(recipe)
    for name in missing_lists:
        reason = "it may not be shipped: `import` makes it from its authors' files"
        yield Awaited("", "", f"list {name}", False, reason)
    for group in recipe.group:
        for split, rule in group.images.items():
            if (split, group.name) in frozen or rule.from_ is None:
                continue
            for publisher in _unlisted_splits(group, rule, recipe.datasets):
                state = states[group.source]
                split_state = state.split(publisher)
                ready, reason = _readiness(state, split_state)
                yield Awaited(group.name, split, f"{group.source} {publisher}", ready, reason)


def _unlisted_splits(group: Group, rule: ImageRule, datasets: Sources) -> list[str]:
    """Return the publisher's splits that a rule draws from and that have no inventory."""
    listed = inventory_splits(group.source, datasets)
    return [s for s in expand(group.source, rule.from_ or (), datasets) if s not in listed]


def _readiness(state: SourceState, split_state: SplitState) -> tuple[bool, str]:
    if state.state in (NO_ROOT, BAD_ROOT):
        return False, f"{state.state} of {state.name}"
    if split_state.difference is not None:
        return False, split_state.difference
    if state.order != "published":
        return False, NO_POSITIONS
    return True, "at hand: build and freeze"


def _pixels(source: str, recipe: Recipe, states: Mapping[str, SourceState]) -> str:
    """Return the state of a source's pixels, or the number of its images that are missing."""
    state = states[source]
    if state.state in (BUILT_IN, NO_ROOT, BAD_ROOT):
        return state.state
    splits = _splits_used(recipe, source)
    short = [s for s in state.splits if s.split in splits and (s.expected is None or s.held != s.expected)]
    return ", ".join(lacking_text(s) for s in short) or COMPLETE


def held_text(split: SplitState) -> str:
    """Return the number of images of a split at hand, of the published number (``?`` if unknown)."""
    count = "-" if split.held is None else f"{split.held:,}"
    return _of_split(split, f"{count} of {'?' if split.expected is None else f'{split.expected:,}'}")


def lacking_text(split: SplitState) -> str:
    """Return the number of images of a split that are not at hand, of the published number."""
    count = split.held or 0
    if split.expected is None:
        return _of_split(split, f"{count:,} at hand of an unknown number")
    if count > split.expected:
        return _of_split(split, f"{count - split.expected:,} more than the {split.expected:,} published")
    return _of_split(split, f"{split.expected - count:,} of {split.expected:,}")


def _of_split(split: SplitState, text: str) -> str:
    """Return ``text`` after the name of the split, unless the source has only the split ``all``."""
    return text if split.split == "all" else f"{split.split} {text}"


def _splits_used(recipe: Recipe, source: str) -> tuple[str, ...]:
    """Return the publisher's splits that a recipe takes images of a source from."""
    used: set[str] = set()
    for group in recipe.group:
        for rule in group.images.values() if group.source == source else ():
            if rule.list_ is not None:
                used |= _splits_listed(rule.list_, source)
            elif rule.from_ is not None:
                used |= set(expand(source, rule.from_, recipe.datasets))
    return tuple(sorted(used))


@cache
def _splits_listed(name: str, source: str) -> frozenset[str]:
    """Return the publisher's splits of a list's images, including all without inventory for unknown ids."""
    if name not in list_names():
        return frozenset()
    table = load_list(name)
    left = table.filter(pc.equal(table["source"], source))["image_id"]
    used = set()
    for split in inventory_splits(source):
        inventory = load_inventory(source, split)
        assert inventory is not None
        inside = pc.is_in(left, value_set=inventory["image_id"].combine_chunks())
        if pc.any(inside, min_count=0).as_py():
            used.add(split)
            left = left.filter(pc.invert(inside))
    elsewhere = set(load_catalog(source).splits) - set(inventory_splits(source))
    return frozenset(used | elsewhere if len(left) else used)
