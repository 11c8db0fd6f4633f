"""`export_scores`: the scores of entries as one partitioned table."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from wordnet_splits.base import files
from wordnet_splits.base.errors import DataError, SplitsError
from wordnet_splits.base.jsonable import Jsonable
from wordnet_splits.base.parquet import write_table
from wordnet_splits.base.progress import Progress, Silent
from wordnet_splits.base.schemas import write_sealed
from wordnet_splits.base.untrusted import sha256_of
from wordnet_splits.benchmark.resolve import load_manifest

from ..arrays import Array
from ..evaluation.results import Results
from ..evaluation.rows_from_scores import DetectorRun, blocks, image_keys, scored_images
from ..evaluation.schema import MODEL, About, RunFacts
from .layout import (
    CONFIDENCES,
    CONFIDENCES_FOLDER,
    DESCRIPTION,
    IMAGES,
    IMAGES_FILE,
    LARGEST_PART,
    MODELS,
    MODELS_FILE,
    PREDICTIONS,
    PREDICTIONS_FOLDER,
    QUICK,
    TableBenchmark,
    TableDescription,
    part_path,
)

LONGEST_NAME = 80
OF_TABLE = {DESCRIPTION, IMAGES_FILE, MODELS_FILE, CONFIDENCES_FOLDER, PREDICTIONS_FOLDER}
PREDICTED = ("prediction", "target_probability", "max_probability")


@dataclass(frozen=True)
class ScoreExport(Jsonable):
    """The outcome of `export_scores`.

    Attributes
    ----------
    out : the folder. images, models, detectors, scores : numbers in the table, of all benchmarks.
    bytes : of all files. notes : sentences on what was left out.
    """

    out: str
    benchmarks: tuple[str, ...]
    images: int
    models: int
    detectors: int
    scores: int
    bytes: int
    left_out: tuple[str, ...]
    notes: tuple[str, ...]


def export_scores(
    entries: Sequence[str | Path] | str | Path,
    out: str | Path,
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> ScoreExport:
    """Write the scores of results, or of entries of a leaderboard, as one table; see `score_table`.

    Confidences are the float32 of the results, from which their metrics were computed: metrics of the table
    equal those of the entries. Networks are told apart by fingerprint and transform.

    Parameters
    ----------
    entries : folders that ``run`` or ``submit`` wrote, on any benchmarks.
    out : folder of the table. overwrite : replace a table there.

    Raises
    ------
    DataError : no entry has scores, one is damaged, or two have scores of one detector and network, or other
        images under the name of one benchmark.
    OutputError : ``out`` cannot be written, holds a table (not with ``overwrite``), or other files.
    """
    folders = [Path(entries)] if isinstance(entries, str | Path) else [Path(entry) for entry in entries]
    out = Path(out)
    files.refuse_folder(out, OF_TABLE, holding="a score table", overwrite=overwrite)
    table = _Table()
    for folder in folders:
        table.add(folder, Results.read(folder))
    if not table.parts:
        raise DataError("no scores of images are there", where=", ".join(map(str, folders)))
    with files.locked(out, busy="another export is writing here"):
        files.restore(out)
        files.refuse_folder(out, OF_TABLE, holding="a score table", overwrite=overwrite)
        with files.replacing_folder(out) as part:
            scores = table.write(part, progress or Silent())
    sizes = [path.stat().st_size for path in out.rglob("*") if path.is_file()]
    return ScoreExport(
        str(out),
        tuple(table.benchmarks),
        sum(len(benchmark.images) for benchmark in table.benchmarks.values()),
        len({(p.benchmark, p.model) for p in table.parts}),
        len({detector for p in table.parts for detector, _ in p.keys}),
        scores,
        sum(sizes),
        tuple(table.left_out),
        tuple(table.notes),
    )


class _Benchmark:
    """The test images of one benchmark, numbered in their order."""

    def __init__(self, about: About) -> None:
        self.about = about
        self.images: dict[str, tuple[Any, ...]] = {}
        manifest_images = _manifest_images(about)
        self.of_manifest = manifest_images is not None
        if manifest_images is not None:
            self.images = dict(_image_rows(manifest_images))
        self._numbers: dict[str, int] = {}

    def add(self, predictions: pa.Table, where: str) -> None:
        """Add the images of an entry; those of a manifest are all there already."""
        for (detector, _), table in blocks(predictions, "predictions"):
            for key, row in () if detector else _image_rows(table):
                earlier_row = self.images.get(key)
                if earlier_row is None and self.of_manifest:
                    message = f"{row[1]} of {row[3]} is not an image of {self.about.benchmark}"
                    raise DataError(message, where=where)
                if earlier_row not in (None, row):
                    message = f"{row[1]} of {row[3]} has another class, role or label elsewhere"
                    raise DataError(message, where=where)
                self.images.setdefault(key, row)

    def fix_order(self) -> None:
        """Number the images in the order of the manifest, else by set and id."""
        if not self.of_manifest:
            self.images = dict(sorted(self.images.items()))
        self._numbers = {key: number for number, key in enumerate(self.images)}

    def numbers(self, keys: Array) -> Array:
        """Return the number (n,) int32 of each image."""
        return np.fromiter((self._numbers[key] for key in keys.tolist()), np.int32, len(keys))

    def table(self) -> pa.Table:
        """Return the rows of ``images.parquet``."""
        columns = list(zip(*self.images.values(), strict=True))
        count = len(self.images)
        values = [[self.about.benchmark] * count, range(count), *columns]
        arrays = [pa.array(list(v), f.type) for f, v in zip(IMAGES, values, strict=True)]
        return pa.Table.from_arrays(arrays, schema=IMAGES)

    def description(self) -> TableBenchmark:
        """Return its part of ``scores.json``."""
        return TableBenchmark(
            name=self.about.benchmark,
            version=self.about.version,
            images_fingerprint=self.about.images_fingerprint,
            numbered_by="manifest" if self.of_manifest else "entries",
            images=len(self.images),
        )


def _image_rows(table: pa.Table) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Yield the key of each image, and its columns of `IMAGES` after the number."""
    columns = (table[name].to_pylist() for name in IMAGES.names[2:])
    yield from zip(image_keys(table).tolist(), zip(*columns, strict=True), strict=True)


@dataclass(frozen=True)
class _Part:
    """The detectors of one network in one entry.

    Attributes
    ----------
    keys : detectors and runs. predictions : run of the network's own predictions, None for an ensemble.
    """

    benchmark: str
    model: str
    entry: str
    results: Results
    facts: RunFacts
    model_key: str
    transform_key: str
    keys: tuple[DetectorRun, ...]
    predictions: int | None


@dataclass
class _Table:
    """A table to be written."""

    benchmarks: dict[str, _Benchmark] = field(default_factory=dict)
    parts: list[_Part] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    entries: list[str] = field(default_factory=list)
    _slugs: dict[tuple[str, str, str], str] = field(default_factory=dict)
    _owners: dict[tuple[str, str, str, str], str] = field(default_factory=dict)

    def add(self, folder: Path, results: Results) -> None:
        """Add the scores of an entry."""
        about, entry = results.about, self._entry_name(folder)
        if results.unscored_runs:
            runs = ", ".join(map(str, results.unscored_runs))
            self.left_out.append(f"{folder}: the entry has no scores of runs {runs}")
        if not results.has_scores:
            return
        self.entries.append(entry)
        self._benchmark(about, str(folder)).add(results.predictions, str(folder))
        uses = {
            (row["detector"], row["run"]): (row["model_key"], row["transform_key"])
            for row in results.results.select(["detector", "run", "model_key", "transform_key"])
            .group_by(["detector", "run", "model_key", "transform_key"], use_threads=False)
            .aggregate([])
            .to_pylist()
        }
        scored = [key for key, _ in blocks(results.scores.select(["detector", "run"]), "scores")]
        networks: dict[tuple[str, str], list[DetectorRun]] = {}
        for key in scored:
            networks.setdefault(uses[key], []).append(key)
        runs_by_number = {facts.run: facts for facts in about.runs}
        for (model_key, transform_key), keys in networks.items():
            facts = runs_by_number[keys[0][1]]
            is_network = (
                uses.get((MODEL, facts.run)) == (model_key, transform_key) or model_key == facts.model_key
            )
            name = _network_name(about, facts) if is_network else f"{facts.model}-ensemble"
            slug = self._slug(about.benchmark, name, model_key, transform_key)
            for detector, _ in keys:
                owner = self._owners.setdefault(
                    (about.benchmark, model_key, transform_key, detector), str(folder)
                )
                if owner != str(folder):
                    message = f"holds scores of {detector} on {facts.name}, as {owner} does"
                    raise DataError(message, where=str(folder), hint="leave one of them out")
            self.parts.append(
                _Part(
                    about.benchmark,
                    slug,
                    entry,
                    results,
                    facts,
                    model_key,
                    transform_key,
                    tuple(keys),
                    facts.run if is_network else None,
                )
            )

    def _entry_name(self, folder: Path) -> str:
        name = _slugged(folder.resolve().name)
        while name in self.entries:
            name = f"{name}-{len(self.entries)}"
        return name

    def _benchmark(self, about: About, where: str) -> _Benchmark:
        benchmark = self.benchmarks.get(about.benchmark)
        if benchmark is not None:
            if benchmark.about.images_fingerprint != about.images_fingerprint:
                message = f"is of other images of {about.benchmark} than another entry"
                raise DataError(message, where=where, hint="export them into tables of their own")
            return benchmark
        benchmark = self.benchmarks[about.benchmark] = _Benchmark(about)
        if not benchmark.of_manifest:
            self.notes.append(
                f"{about.benchmark} is not here, or incomplete: its images are those of the entries"
            )
        return benchmark

    def _slug(self, benchmark: str, name: str, model_key: str, transform_key: str) -> str:
        """Return the name of a network's partition, unique in its benchmark."""
        identity = (benchmark, model_key, transform_key)
        if identity not in self._slugs:
            slugs = {
                slug for (benchmark_name, _, _), slug in self._slugs.items() if benchmark_name == benchmark
            }
            slug = _slugged(name)
            if slug in slugs:
                slug = f"{slug}-{model_key[:8]}"
            if slug in slugs:
                slug = f"{slug}-{transform_key[:8]}"
            self._slugs[identity] = slug
        return self._slugs[identity]

    def write(self, folder: Path, progress: Progress) -> int:
        """Write every file of the table, and return the number of scores."""
        for benchmark in self.benchmarks.values():
            benchmark.fix_order()
        tables = {
            IMAGES_FILE: pa.concat_tables(benchmark.table() for benchmark in self.benchmarks.values()),
            MODELS_FILE: _models(self.parts),
        }
        for name, table in tables.items():
            write_table(table, folder / name)
        scores = 0
        with progress.task("networks written", len(self.parts)) as task:
            for part in self.parts:
                scores += self._write_part(folder, part)
                task.advance()
        description = TableDescription(
            schema=1,
            benchmarks=[benchmark.description() for benchmark in self.benchmarks.values()],
            entries=self.entries,
            notes=[*self.left_out, *self.notes],
            files={
                path.relative_to(folder).as_posix(): sha256_of(path, largest=LARGEST_PART)
                for path in sorted(folder.rglob("*.parquet"))
            },
        )
        write_sealed(folder / DESCRIPTION, description.model_dump(mode="json", by_alias=True))
        return scores

    def _write_part(self, folder: Path, part: _Part) -> int:
        benchmark = self.benchmarks[part.benchmark]
        keys = set(part.keys)
        parts, scores = [], 0
        for key, images, confidence in scored_images(part.results.scores, part.results.predictions):
            if key not in keys:
                continue
            numbers = benchmark.numbers(images.keys)
            order = np.argsort(numbers, kind="stable")
            correct, labelled = images.correctness()
            columns = {
                "image": pa.array(numbers[order]),
                "detector": pa.repeat(pa.scalar(key[0]), len(order)),
                "confidence": pa.array(confidence[order], pa.float32()),
                "correct": pa.array(correct[order], mask=~labelled[order]),
            }
            parts.append(pa.table(columns, schema=CONFIDENCES))
            scores += len(order)
        path = part_path(CONFIDENCES_FOLDER, part.benchmark, part.model, part.entry)
        write_table(pa.concat_tables(parts), folder / path, compression_level=QUICK)
        network_key = None if part.predictions is None else ("", part.predictions)
        for key, table in blocks(part.results.predictions, "predictions"):
            if key == network_key:
                numbers = benchmark.numbers(image_keys(table))
                table = table.select(PREDICTED).add_column(0, "image", pa.array(numbers))
                table = table.take(pa.array(np.argsort(numbers, kind="stable"))).cast(PREDICTIONS)
                path = part_path(PREDICTIONS_FOLDER, part.benchmark, part.model, part.entry)
                write_table(table, folder / path)
        return scores


def _network_name(about: About, facts: RunFacts) -> str:
    """Return the name of a network: that of its model, and its own where there are several runs."""
    if facts.name.startswith(facts.model):
        return facts.name
    return facts.model if len(about.runs_of(facts.model)) == 1 else f"{facts.model}-{facts.name}"


def _models(parts: Sequence[_Part]) -> pa.Table:
    """Return the rows of ``models.parquet``."""
    rows = [
        {
            "benchmark": part.benchmark,
            "model": part.model,
            "name": part.facts.model,
            "network": part.facts.name,
            "run": part.facts.run,
            "entry": part.entry,
            "model_key": part.model_key,
            "transform_key": part.transform_key,
            "detectors": len(part.keys),
        }
        for part in parts
    ]
    return pa.Table.from_pylist(rows, schema=MODELS)


def _manifest_images(about: About) -> pa.Table | None:
    """Return the test images of a benchmark at hand, None where it is not, or is another version."""
    if about.own_sets or about.images_fingerprint is None:
        return None
    try:
        manifest = load_manifest(about.benchmark)
    except SplitsError:
        return None
    tables = [images() for (split, _), images in manifest.parts.items() if split == "test"]
    return pa.concat_tables(tables) if manifest.fingerprint == about.images_fingerprint else None


def _slugged(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.+-]+", "-", name).strip("-.")[:LONGEST_NAME] or "model"
