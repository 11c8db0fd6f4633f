"""The tables of an evaluation: printed, written to disk and read back.

Beside ``results.parquet`` and ``scores.parquet`` stand ``predictions.parquet``,
``by_class.parquet`` and ``by_nearness.parquet``, from which every row of results can be recomputed,
``sweeps.parquet`` where values were chosen, and ``about.json``, which describes them and holds the checksum
of each. Scores and predictions are stored wide (`wide_tables`); an entry of the leaderboard may keep
its tables without them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from wordnet_splits.base import files
from wordnet_splits.base.errors import DataError, OutputError, SplitsError
from wordnet_splits.base.files import as_path
from wordnet_splits.base.parquet import FEW_ROWS, MAX_ROWS_PER_BYTE, read_table, write_table
from wordnet_splits.base.schemas import read_sealed, write_sealed
from wordnet_splits.base.tabular import terminal_width
from wordnet_splits.base.untrusted import check_file, sha256_of

from ..extraction.runs import run_title
from .call import EvaluationCall
from .schema import FINGERPRINT_SUBJECTS, MAY_BE_EMPTY, SCHEMAS, SWEEPS, About, ResultTables, Sealed
from .tables import format_tables, html_of, text_of
from .wide_tables import VALUES, lengthen, widen

FILES = tuple(f"{name}.parquet" for name in SCHEMAS)
SCORED = tuple(f"{name}.parquet" for name in VALUES)
"""Files with a row for each image, which an entry of the leaderboard may leave out."""
ABOUT, SWEPT = "about.json", "sweeps.parquet"
MAX_TRIALS = 100_000
"""Most values that sweeps tried; they become Python objects."""
MAX_FILE_SIZE = 1 << 34
MAX_TEXT_SIZE = 1 << 16
"""Bytes of a text in a table; the longest of ours list the values that a sweep could not use."""


@dataclass(frozen=True, eq=False, repr=False)
class Results(ResultTables):
    """The results of one evaluation; printed, tables in the layout of the benchmark's paper.

    Attributes
    ----------
    call : the networks and options of the call that computed them; None for results that were read.
    """

    call: EvaluationCall | None = None

    def __repr__(self) -> str:
        models = ", ".join(self.about.models)
        return f"Results({self.about.benchmark}: {models}; {', '.join(self.detectors)})"

    def __str__(self) -> str:
        return text_of(self)

    def table(self, layout: str | None = None, *, width: int | None = None) -> str:
        """Return the tables as text, as ``unknown-eval run`` prints them.

        Parameters
        ----------
        layout : of another paper than the benchmark's, ``kim``, ``palechor``, ``abdelzad``, ``openood``,
            ``recalcati`` or ``plain``.
        width : characters of a line, over which wide tables are folded; by default the terminal's, and
            unlimited without one (a notebook, a file).

        Raises
        ------
        UnknownNameError : no such layout.
        """
        return text_of(self, layout, terminal_width() if width is None else width)

    def to_latex(self, layout: str | None = None) -> str:
        """Return the tables as LaTeX that needs the packages booktabs and graphicx.

        Bold are the best value of each column and those whose bootstrap interval includes it; the caption
        says so, and which sets are missing.

        Raises
        ------
        UnknownNameError : no such layout. DataError : none of the layout's tables can be filled.
        """
        return format_tables(self, "latex", layout)

    def to_markdown(self, layout: str | None = None) -> str:
        """Return the tables as Markdown, as `to_latex` does."""
        return format_tables(self, "markdown", layout)

    def _repr_html_(self) -> str:
        return html_of(self)

    @property
    def plot(self) -> Any:
        """Its plots: ``results.plot.roc()`` for a notebook, ``results.plot.roc("roc.svg")`` for a file."""
        # a plain import would make evaluation depend on plots, which are drawn from results
        return import_module("..report.plots.plot_results", __package__).ResultPlots(self)

    def export_detector(self, detector: Any, *, false_alarms: float = 0.05, **options: Any) -> Any:
        """Return a detector of these results as a `ShippedDetector`: fitted, with a threshold, for images.

        Parameters
        ----------
        detector : its label. false_alarms : greatest acceptable share of ID images that are flagged.
        options : of `deployment.export_detector`; by default those of the call that computed the results.
        """
        export = import_module("..deployment.export", __package__)
        return export.export_detector(self, detector, false_alarms=false_alarms, **options)

    def hierarchy(self, **options: Any) -> Any:
        """Return answers for every image at a node of WordNet as a `HierarchyReport`, with their errors.

        Parameters
        ----------
        options : of `hierarchy.name_unknowns`: ``rules``, ``detectors``, ``store``, ``bootstrap``, ...
        """
        return import_module("..hierarchy", __package__).name_unknowns(self, **options)

    def write(self, folder: str | Path, *, overwrite: bool = False) -> tuple[Path, ...]:
        """Write every table into ``folder`` and return the files.

        Raises
        ------
        OutputError : the folder cannot be written, or holds results of other models, on other images or on
            another benchmark (not with ``overwrite``).
        """
        folder = Path(folder)
        with files.locked(folder, busy="another evaluation is writing its results here"):
            with files.writing(folder, hint="give another folder"):
                folder.mkdir(parents=True, exist_ok=True)
            if not overwrite:
                about = self.about
                refuse_other_results(folder, about.benchmark, about.fingerprints, _models(about))
            files.clear_parts(folder)
            tables = {f"{name}.parquet": getattr(self, name) for name in SCHEMAS}
            if self.sweeps.num_rows:
                tables[SWEPT] = self.sweeps
            names = tuple(tables)
            with ExitStack() as stack:  # all are written before the first takes its place; last comes ABOUT
                about_part = stack.enter_context(files.replacing(folder / ABOUT))
                parts = {name: stack.enter_context(files.replacing(folder / name)) for name in names}
                for name, table in tables.items():
                    stored, metadata = widen(name.removesuffix(".parquet"), table)
                    write_table(stored, parts[name], metadata=metadata)
                sealed = Sealed(schema=1, about=self.about, files=_checksums(parts))
                write_sealed(about_part, _content(sealed))
                with files.writing(folder / ABOUT):
                    for name in (ABOUT, SWEPT):  # no results until the new files take their place
                        (folder / name).unlink(missing_ok=True)
        return tuple(folder / name for name in (*names, ABOUT))

    @classmethod
    def read(cls, folder: str | Path) -> Results:
        """Read a folder written by `write`.

        Raises
        ------
        DataError : a file is absent, damaged, altered, or of other columns.
        """
        results, altered = read_folder(as_path(folder, where="folder"))
        if altered:
            raise DataError(
                "was altered: its checksum differs",
                where=str(Path(folder) / altered[0]),
                hint=f"`unknown-eval check-results {folder}` says what differs",
            )
        return results


def read_folder(folder: Path) -> tuple[Results, list[str]]:
    """Return the results in a folder, and the names of the files whose checksum differs.

    Raises
    ------
    DataError : a file is absent, damaged, of other columns, or has a null in a required column.
    """
    sealed = _read_about(folder)
    swept = SWEPT in sealed.files or (folder / SWEPT).exists()
    tables = {}
    for name, schema in {**SCHEMAS, **({"sweeps": SWEEPS} if swept else {})}.items():
        path = folder / f"{name}.parquet"
        if path.name in SCORED and path.name not in sealed.files and sealed.unscored_runs:
            tables[name] = schema.empty_table()
            continue
        rows = max(FEW_ROWS, check_file(path, largest=MAX_FILE_SIZE))  # a score takes more than a byte
        stored = read_table(path, max_rows=MAX_TRIALS if name == "sweeps" else rows)
        tables[name] = lengthen(name, stored, schema, max_rows=MAX_ROWS_PER_BYTE * rows, where=str(path))
        if not tables[name].schema.equals(schema):
            raise DataError(f"its columns are not those of {name}", where=str(path))
        _check_cells(tables[name], path)
        others = {*tables[name]["run"].unique().to_pylist()} - {facts.run for facts in sealed.about.runs}
        if others:
            raise DataError(f"run {min(others)} is not in {ABOUT}", where=str(path), hint="evaluate again")
    if swept and not tables["sweeps"].num_rows:
        raise DataError("holds no value that a sweep tried", where=str(folder / SWEPT), hint="evaluate again")
    names = [name for name in FILES if name in sealed.files or name not in SCORED or not sealed.unscored_runs]
    checksums = _checksums({name: folder / name for name in (*names, *((SWEPT,) if swept else ()))})
    altered = [name for name, checksum in checksums.items() if sealed.files.get(name) != checksum]
    return Results(**tables, about=sealed.about, unscored_runs=sealed.unscored_runs), altered


def leave_out_scores(folder: str | Path, runs: Collection[int]) -> None:
    """Remove the scores and predictions of some runs of stored results; the tables of their metrics stay.

    ``about.json`` names the runs. Values computed from scores (intervals, most plots) are refused from then
    on, and checking recomputes the other runs.
    """
    folder = Path(folder)
    stored = Results.read(folder)
    unscored = tuple(sorted({*stored.unscored_runs, *runs}))
    with files.locked(folder, busy="another evaluation is writing its results here"):
        sealed = _read_about(folder)
        checksums = {name: digest for name, digest in sealed.files.items() if name not in SCORED}
        for name in VALUES:
            table, path = getattr(stored, name), folder / f"{name}.parquet"
            rest = table.filter(pc.invert(pc.is_in(table["run"], value_set=pa.array(unscored, pa.int32()))))
            path.unlink()
            if rest.num_rows:
                wide, metadata = widen(name, rest)
                write_table(wide, path, metadata=metadata)
                checksums |= _checksums({path.name: path})
        update = {"files": checksums, "unscored_runs": unscored}
        write_sealed(folder / ABOUT, _content(sealed.model_copy(update=update)))


def _content(sealed: Sealed) -> dict[str, Any]:
    content = sealed.model_dump(mode="json", by_alias=True)
    about = content["about"]
    optional = ((about, "metrics"), (about, "foreign"), (about, "software"))
    for part, name in ((content, "unscored_runs"), *optional):
        if not part[name]:  # as in older files
            del part[name]
    return content


def _check_cells(table: pa.Table, path: Path) -> None:
    """Raise DataError for a table with nulls in required columns, or with overlong texts."""
    for name in table.schema.names:
        column, problem = table[name], ""
        if name not in MAY_BE_EMPTY and column.null_count:
            problem = "has empty cells"
        elif (
            pa.types.is_string(column.type)
            and (pc.max(pc.binary_length(column)).as_py() or 0) > MAX_TEXT_SIZE
        ):
            problem = f"has texts of more than {MAX_TEXT_SIZE:,} bytes"
        if problem:
            raise DataError(f"column {name!r} {problem}", where=str(path), hint="evaluate again")


def refuse_other_results(
    folder: Path, benchmark: str, fingerprints: Mapping[str, str | None], models: Set[tuple[str, str]]
) -> None:
    """Raise OutputError for a folder with results on another benchmark, or of another model.

    More seeds of the same models, or other detectors, may replace its results.

    Parameters
    ----------
    fingerprints : `About.fingerprints`, which have to agree; None is not compared.
    models : (name, model_key) of all models.

    Raises
    ------
    OutputError : also where its ``about.json`` cannot be read.
    """
    if not (folder / ABOUT).exists():
        return
    hint = "give another folder, or overwrite these (--overwrite)"
    try:
        stored = _read_about(folder).about
    except SplitsError as error:
        message = f"holds results that cannot be read: {error.what}"
        raise OutputError(message, where=str(folder), hint=hint) from error
    if stored.benchmark != benchmark:
        raise OutputError(f"holds results on {stored.benchmark}", where=str(folder), hint=hint)
    for key, subject in FINGERPRINT_SUBJECTS.items():
        pair = {fingerprints[key], stored.fingerprints[key]}
        if len(pair - {None}) > 1:
            message = f"holds results on other {subject} of {benchmark}"
            raise OutputError(message, where=str(folder), hint=hint)
    other_runs = [run for run in stored.runs if (run.model, run.model_key) not in models]
    if other_runs:
        titles = ", ".join(run_title(run.model, run.name) for run in other_runs)
        raise OutputError(f"holds results of other models: {titles}", where=str(folder), hint=hint)


def benchmark_of(folder: Path) -> str:
    """Return the benchmark of the results in a folder; DataError where there are none."""
    return _read_about(folder).about.benchmark


def _models(about: About) -> set[tuple[str, str]]:
    return {(run.model, run.model_key) for run in about.runs}


def _read_about(folder: Path) -> Sealed:
    """Return the content of ``about.json``, which is written last and removed first."""
    if not (folder / ABOUT).exists():
        if any((folder / name).exists() for name in FILES) or any(folder.glob(f".*{files.PART}")):
            message = f"holds results that were not written to their end: there is no {ABOUT}"
            raise DataError(message, where=str(folder), hint="run the command that wrote them again")
        raise DataError(f"no {ABOUT} here", where=str(folder), hint="give the folder that `run` wrote")
    return read_sealed(folder / ABOUT, Sealed, hint="evaluate again")


def _checksums(paths: Mapping[str, Path]) -> dict[str, str]:
    return {name: sha256_of(path, largest=MAX_FILE_SIZE) for name, path in paths.items()}
