"""`export_scores`: merge the score tables of several results on a benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from wordnet_splits.base import files
from wordnet_splits.base.errors import DataError
from wordnet_splits.base.jsonable import Jsonable
from wordnet_splits.base.names import listed
from wordnet_splits.base.parquet import read_table, write_table
from wordnet_splits.base.progress import Progress, Silent
from wordnet_splits.base.text_formats import BenchmarkName, Count, read_sealed, write_sealed
from wordnet_splits.base.untrusted import GiB, sha256_of

from .metadata import DetectorFacts, MetadataPart, ResultsMetadata, RunFacts
from .results import SCORED, Results
from .scores import (
    IMAGES,
    DetectorRun,
    check_scores,
    column_of,
    image_keys,
    predicted_keys,
    prediction_schema,
    score_schema,
)

DESCRIPTION: Final = "scores.json"
LARGEST_FILE: Final = 64 * GiB
QUICK: Final = 3
"""Level of zstd: level 19 takes 15 times as long and saves 6%."""


class Network(MetadataPart):
    """A network of an exported table.

    Attributes
    ----------
    run : its number in the columns.
    model : the model that it is a run of.
    name : its own name.
    entries : the results that it comes from.
    transforms : keys of its transforms.
    """

    run: Count
    model: str
    name: str
    model_key: str
    transforms: list[str]
    entries: list[str]


class ScoreTableMetadata(MetadataPart):
    """``scores.json``: the detector and network of each column, and the SHA-256 of both files.

    Attributes
    ----------
    detectors : facts of each column of confidences, in order.
    notes : sentences on omitted scores.
    """

    schema_: Literal[2] = Field(alias="schema")
    benchmark: BenchmarkName
    version: Count
    images_fingerprint: str | None
    evaluation_fingerprint: str
    networks: list[Network]
    detectors: list[DetectorFacts]
    notes: list[str]
    files: dict[str, str]


@dataclass(frozen=True)
class ScoreExport(Jsonable):
    """The outcome of `export_scores`.

    Attributes
    ----------
    out : the folder.
    images, models, detectors, scores : numbers in the tables, of all benchmarks.
    bytes : of all files.
    left_out : sentences on runs without scores.
    """

    out: str
    benchmarks: tuple[str, ...]
    images: int
    models: int
    detectors: int
    scores: int
    bytes: int
    left_out: tuple[str, ...]


def export_scores(
    entries: Sequence[str | Path] | str | Path,
    out: str | Path,
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> ScoreExport:
    """Write the scores of results, or of leaderboard entries, as a merged table for each benchmark.

    ``OUT/BENCHMARK`` gets ``scores.parquet`` and ``predictions.parquet``, in the form of results (see
    `results.scores`), and ``scores.json``. Networks with different fingerprints or transforms are separate,
    and get new numbers. A cell is empty if an entry did not score an image that another entry scored.

    Parameters
    ----------
    entries : folders that ``run`` or ``submit`` wrote, on any benchmarks.
    out : folder of the tables.
    overwrite : replace tables there.

    Raises
    ------
    DataError : no entry has scores, an entry is damaged, two entries score the same detector and network, or
        two entries on a benchmark score different images.
    OutputError : ``out`` cannot be written, holds tables (not with ``overwrite``), or other files.
    """
    folders = [Path(entries)] if isinstance(entries, str | Path) else [Path(entry) for entry in entries]
    out = Path(out)
    tables: dict[str, _Table] = {}
    left_out = []
    for folder in folders:
        results = Results.read(folder)
        about = results.about
        if about.unscored_runs:
            runs = listed(about.unscored_runs, 12)
            left_out.append(f"{folder}: the entry has no scores of runs {runs}")
        if results.has_scores:
            tables.setdefault(about.benchmark, _Table(about)).add(folder, results)
    if not tables:
        raise DataError("no entry has scores of images", where=", ".join(map(str, folders)))
    with files.locked(out, busy="another export is writing here"):
        files.restore(out)
        held = {path.name for path in out.glob("*") if (path / DESCRIPTION).is_file()}
        files.refuse_folder(out, held, holding="score tables", overwrite=overwrite)
        with (
            files.replacing_folder(out) as part,
            (progress or Silent()).task("benchmarks written", len(tables)) as task,
        ):
            for benchmark, table in tables.items():
                table.write(part / benchmark, left_out)
                task.advance()
    written = tables.values()
    return ScoreExport(
        str(out),
        tuple(tables),
        sum(table.scores.num_rows for table in written),
        sum(len(table.networks) for table in written),
        len({facts.detector for table in written for facts in table.detectors.values()}),
        sum(
            table.scores.num_rows - column.null_count
            for table in written
            for column in table.scores.columns[len(IMAGES) :]
        ),
        sum(path.stat().st_size for path in out.rglob("*") if path.is_file()),
        tuple(left_out),
    )


@dataclass
class _Table:
    """The merged table of a benchmark.

    Attributes
    ----------
    rows : name of an image -> its row.
    """

    about: ResultsMetadata
    scores: pa.Table = field(default_factory=lambda: score_schema(()).empty_table())
    predictions: pa.Table = field(default_factory=lambda: prediction_schema(()).empty_table())
    rows: dict[str, int] = field(default_factory=dict)
    networks: dict[tuple[str, ...], Network] = field(default_factory=dict)
    detectors: dict[DetectorRun, DetectorFacts] = field(default_factory=dict)

    def add(self, folder: Path, results: Results) -> None:
        """Add the scores and predictions of an entry."""
        if results.about.fingerprints != self.about.fingerprints:
            message = f"has other images of {self.about.benchmark} than another entry"
            raise DataError(message, where=str(folder), hint="export them separately")
        self._add_images(folder, results.scores)
        unscored = results.about.unscored_runs
        numbers = {
            run.run: self._number(folder, run) for run in results.about.runs if run.run not in unscored
        }
        own_rows = {key: row for row, key in enumerate(image_keys(results.scores).tolist())}
        rows = pa.array([own_rows.get(key) for key in self.rows], pa.int64())
        columns = {name: self.scores[name] for name in self.scores.column_names}
        for facts in results.about.detectors:
            if facts.run in unscored:
                continue
            key = (facts.detector, numbers[facts.run])
            if key in self.detectors:
                message = f"scores {facts.detector} on a network that another entry scores, too"
                raise DataError(message, where=str(folder), hint="leave one of them out")
            runs = tuple(numbers[run] for run in facts.runs if run in numbers)
            self.detectors[key] = facts.model_copy(update={"run": key[1], "runs": runs})
            columns[column_of(key)] = results.scores[column_of((facts.detector, facts.run))].take(rows)
        self.scores = pa.table(columns).combine_chunks()
        predicted = {name: self.predictions[name] for name in self.predictions.column_names}
        for name, run in predicted_keys(results.predictions):
            for column in (f.name for f in prediction_schema([(name, run)])):
                value = column.partition("/")[0]
                values = results.predictions[column].take(rows)
                renamed = f"{value}/{column_of((name, numbers[run]))}"
                known = predicted.get(renamed)
                predicted[renamed] = values if known is None else pc.coalesce(known, values)
        self.predictions = pa.table(predicted).combine_chunks()

    def _add_images(self, folder: Path, scores: pa.Table) -> None:
        """Add rows for the images that no earlier entry has."""
        images = scores.select(IMAGES.names)
        new = []
        earlier = self.scores.select(IMAGES.names).to_pylist()
        for row, (key, image) in enumerate(zip(image_keys(images).tolist(), images.to_pylist(), strict=True)):
            if key not in self.rows:
                self.rows[key] = len(self.rows)
                new.append(row)
            elif self.rows[key] < len(earlier) and earlier[self.rows[key]] != image:
                message = (
                    f"{image['image_id']} of {image['group']} has another class, role or label elsewhere"
                )
                raise DataError(message, where=str(folder))
        added = images.take(pa.array(new, pa.int64()))
        nulls = {f.name: pa.nulls(len(new), f.type) for f in self.scores.schema}
        self.scores = pa.concat_tables(
            [self.scores, pa.table(nulls | {name: added[name] for name in IMAGES.names})]
        )
        if self.predictions.num_columns:
            nulls = {f.name: pa.nulls(len(new), f.type) for f in self.predictions.schema}
            self.predictions = pa.concat_tables([self.predictions, pa.table(nulls)])

    def _number(self, folder: Path, facts: RunFacts) -> int:
        """Return the number of a network, a new one for one that no earlier entry has."""
        used = facts.class_map
        columns = (
            "" if used is None else used.model_dump_json(exclude={"mapping"} if used.order else {"order"})
        )
        identity = (facts.model_key, *sorted(facts.transforms), columns)
        network = self.networks.get(identity)
        if network is None:
            network = self.networks[identity] = Network(
                run=len(self.networks),
                model=facts.model,
                name=facts.name,
                model_key=facts.model_key,
                transforms=sorted(facts.transforms),
                entries=[],
            )
        if folder.resolve().name not in network.entries:
            network.entries.append(folder.resolve().name)
        return network.run

    def write(self, folder: Path, notes: Sequence[str]) -> None:
        """Write both files and the description."""
        order = [column_of(key) for key in self.detectors]
        tables = (self.scores.select([*IMAGES.names, *order]), self.predictions)
        for name, table in zip(SCORED, tables, strict=True):
            write_table(table, folder / name, compression_level=QUICK, split_bytes=True)
        description = ScoreTableMetadata(
            schema=2,
            benchmark=self.about.benchmark,
            version=self.about.version,
            images_fingerprint=self.about.images_fingerprint,
            evaluation_fingerprint=self.about.evaluation_fingerprint,
            networks=list(self.networks.values()),
            detectors=list(self.detectors.values()),
            notes=list(notes),
            files={name: sha256_of(folder / name, largest=LARGEST_FILE) for name in SCORED},
        )
        write_sealed(folder / DESCRIPTION, description.model_dump(mode="json", by_alias=True))


def read_scores(folder: Path) -> tuple[ScoreTableMetadata, pa.Table, pa.Table]:
    """Return the description, scores and predictions of an exported table."""
    description = read_sealed(folder / DESCRIPTION, ScoreTableMetadata, hint="export the scores again")
    tables = []
    for name in SCORED:
        if sha256_of(folder / name, largest=LARGEST_FILE) != description.files.get(name):
            raise DataError("was altered: its checksum differs", where=str(folder / name))
        tables.append(read_table(folder / name).replace_schema_metadata(None))
    keys = [(facts.detector, facts.run) for facts in description.detectors]
    runs = [network.run for network in description.networks]
    where = (str(folder / SCORED[0]), str(folder / SCORED[1]))
    check_scores(tables[0], tables[1], keys, runs, complete=False, where=where)
    return description, tables[0], tables[1]
