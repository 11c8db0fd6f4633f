"""The results of an evaluation: printed, written to disk and read back.

A folder of results holds ``scores.parquet`` and ``predictions.parquet``; ``results.parquet``,
``by_class.parquet`` and ``by_nearness.parquet``, computed from these; ``sweeps.parquet`` if a sweep chose
parameters; and ``about.json``, which describes the files and holds their checksums. An entry of the
leaderboard may leave out the scores and predictions of some runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from wordnet_splits.base import files
from wordnet_splits.base.errors import DataError, OutputError, SplitsError, unknown
from wordnet_splits.base.files import as_path
from wordnet_splits.base.parquet import FEW_ROWS, read_table, write_table
from wordnet_splits.base.registry import Registry
from wordnet_splits.base.tabular import data_frame, terminal_width
from wordnet_splits.base.text_formats import read_sealed, write_sealed
from wordnet_splits.base.untrusted import check_file, sha256_of

from ..detectors.parsing import find_label
from ..extraction.outputs import run_title
from .metadata import FINGERPRINT_SUBJECTS, ChecksummedMetadata, ResultsMetadata
from .metric_rows import MEAN, UNKNOWN_ROLES, key_of_label
from .scores import MAY_BE_EMPTY, SCHEMAS, SWEEPS, ResultTables, check_scores, prediction_schema, score_schema
from .tables import Summary, format_tables, html_of, metric_summary, text_of

if TYPE_CHECKING:
    import pandas as pd

Accessor = TypeVar("Accessor", bound=Callable[[Any], Any])
ACCESSORS: Final = Registry[Callable[[Any], Any]]("accessor of results", "", "wordnet_splits.accessors")


def register_accessor(name: str) -> Callable[[Accessor], Accessor]:
    """Register a class or function of results as their attribute ``name``.

    It is called with the results and returns the attribute: an object with methods, or a bound function.

    Examples
    --------
    >>> @register_accessor("doctest_count")
    ... def count(results):
    ...     return len(results)
    >>> find_accessor("doctest_count", [1, 2])
    2
    >>> ACCESSORS.remove("doctest_count")
    """
    return ACCESSORS.register(name)


def find_accessor(name: str, results: Any) -> Any:
    """Return the attribute ``name`` of results; AttributeError if no extension registers it."""
    if name.startswith("_") or name not in list_accessors():  # copying and notebooks look up private names
        raise AttributeError(f"{type(results).__name__!r} object has no attribute {name!r}")
    return ACCESSORS[name](results)


def list_accessors() -> tuple[str, ...]:
    """Return the names of all accessors."""
    _import_extensions()
    return ACCESSORS.names()


@cache
def _import_extensions() -> None:
    """Import the module ``accessor`` of every folder next to this one that has it."""
    harness = import_module(__package__.rpartition(".")[0])
    for path in sorted(path for place in harness.__path__ for path in Path(place).glob("*/accessor.py")):
        import_module(f"{harness.__name__}.{path.parent.name}.accessor")


ABOUT = "about.json"
SCORED = ("scores.parquet", "predictions.parquet")
"""Files with a row for each image, which an entry of the leaderboard may leave out."""
TABLES = (*SCORED, *(f"{name}.parquet" for name in SCHEMAS))
ALWAYS = ("results.parquet", "by_class.parquet", "by_nearness.parquet")
"""Files that all results have; other files are absent if they would have no rows."""
MAX_TRIALS = 100_000
"""Largest number of values that sweeps tried; they become Python objects."""
MAX_FILE_SIZE = 1 << 34
MAX_TEXT_SIZE = 1 << 16
"""Bytes of a text in a table; the longest of ours list the values that a sweep could not use."""


@dataclass(frozen=True, eq=False, repr=False)
class Results(ResultTables):
    """The results of an evaluation; `print` shows tables in the layout of the benchmark's paper.

    Extensions add accessors, such as ``results.plot``: see `register_accessor`.

    Attributes
    ----------
    reopen : run -> `evaluate`'s arguments for opening the run's network and images, for accessors that need
        these again; None for results that were read.
    """

    reopen: Callable[[int], Mapping[str, Any]] | None = None

    def __getattr__(self, name: str) -> Any:
        return find_accessor(name, self)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *list_accessors()]

    def __repr__(self) -> str:
        models = ", ".join(self.about.models)
        return f"Results({self.about.benchmark}: {models}; {', '.join(self.detectors)})"

    def __str__(self) -> str:
        return text_of(self)

    def table(self, layout: str | None = None, *, width: int | None = None) -> str:
        """Return the tables as text, as ``unknown-eval run`` prints them.

        Parameters
        ----------
        layout : ``kim``, ``palechor``, ``abdelzad``, ``openood``, ``recalcati`` or ``plain``, to replace the
            layout of the benchmark's paper.
        width : largest number of characters in a line; wider tables are folded. By default the terminal's
            width, or that of a page without a terminal (a notebook, a file); ``str`` folds nothing.

        Raises
        ------
        UnknownNameError : no such layout.
        """
        return text_of(self, layout, terminal_width() if width is None else width)

    def values(
        self,
        metric: str,
        *,
        group: str | None = None,
        role: str | None = None,
        detector: str | None = None,
        model: str | None = None,
    ) -> pd.DataFrame:
        """Return the values of a metric as a pandas DataFrame, a row per run, detector and group.

        Parameters
        ----------
        metric : its key, such as ``aurc_unknown``, or its heading in tables, such as ``AURC+OOD``.
        group : a set, ``pooled``, or ``near`` or ``far`` (the mean over sets, unless a set has this name).
        role : ``id``, ``near``, ``far``, ``external``, ``csid`` or, of pooled rows, ``near+far``.
        detector : its label, an alias, or the name of the only one of its kind, such as ``knn``.

        Returns
        -------
        Columns model, detector, role, group, run and value (a fraction, NaN where it is undefined).

        Raises
        ------
        UnknownNameError : no row has that metric, group, role, detector or model.
        MissingPackageError : pandas is not installed.
        """
        where, named = self.about.benchmark, ("metric", "group", "role", "detector", "model")
        known = {name: pc.unique(self.results[name]).to_pylist() for name in named}
        if group in UNKNOWN_ROLES and group not in known["group"] and role in (None, group):
            group, role = MEAN, group
        if f"({group})" in known["group"] and group not in known["group"]:
            group = f"({group})"
        if detector is not None:
            detector = find_label(detector, known["detector"], where=where)
        filters = {"metric": key_of_label(metric), "group": group, "role": role}
        filters |= {"detector": detector, "model": model}
        for name, value in filters.items():
            if value is not None and value not in known[name]:
                raise unknown(f"{name} of these results", value, known[name], where=where)
        frame = data_frame(self.rows(**filters))
        return frame.reindex(columns=["model", "detector", "role", "group", "run", "value"])

    def summary(self, metric: str = "auroc") -> Summary:
        """Return the table of a metric: a row per detector (and model), a column per set, near sets first.

        Values are means over runs, printed with their standard deviation, in the unit of the title.
        ``near (mean)`` and ``far (mean)`` are unweighted means over sets.

        Parameters
        ----------
        metric : its key or heading, as of `values`.

        Raises
        ------
        UnknownNameError : the results have no such metric.
        """
        return metric_summary(self, metric)

    def to_latex(self, layout: str | None = None) -> str:
        """Return the tables as LaTeX that needs the packages booktabs and graphicx.

        Each column's best value is bold, and so are values whose bootstrap interval includes the best. The
        caption explains bold and lists the missing sets.

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
            tables = {name: getattr(self, name.removesuffix(".parquet")) for name in TABLES}
            names = tuple(name for name, table in tables.items() if table.num_rows or name in ALWAYS)
            with ExitStack() as stack:  # write all files, then move them into place, ABOUT last
                about_part = stack.enter_context(files.replacing(folder / ABOUT))
                parts = {name: stack.enter_context(files.replacing(folder / name)) for name in names}
                for name in names:
                    write_table(tables[name], parts[name], split_bytes=name in SCORED)
                checksums = {name: sha256_of(part, largest=MAX_FILE_SIZE) for name, part in parts.items()}
                sealed = ChecksummedMetadata(schema=2, about=self.about, files=checksums)
                write_sealed(about_part, sealed.model_dump(mode="json", by_alias=True))
                with files.writing(folder / ABOUT):
                    for name in (ABOUT, *TABLES):  # no results until the new files take their place
                        if name not in names:
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
                hint=f"`unknown-eval recompute --check {folder}` shows the differences",
            )
        return results


def read_folder(folder: Path) -> tuple[Results, list[str]]:
    """Return the results in a folder, and the names of the files whose checksum differs."""
    sealed = _read_about(folder)
    about = sealed.about
    runs = [facts.run for facts in about.runs if facts.run not in about.unscored_runs]
    keys = [(facts.detector, facts.run) for facts in about.detectors if facts.run in runs]
    names = [name for name in TABLES if name in ALWAYS or (name in SCORED and runs) or name in sealed.files]
    tables = {
        "scores": score_schema(()).empty_table(),
        "predictions": prediction_schema(()).empty_table(),
        "sweeps": SWEEPS.empty_table(),
    }
    for name in names:
        path, stem = folder / name, name.removesuffix(".parquet")
        rows = max(FEW_ROWS, check_file(path, largest=MAX_FILE_SIZE))  # a score takes more than a byte
        table = read_table(path, max_rows=MAX_TRIALS if stem == "sweeps" else rows)
        tables[stem] = table.replace_schema_metadata(None)
        if stem in SCHEMAS:
            _check_table(tables[stem], SCHEMAS[stem], {facts.run: facts.model for facts in about.runs}, path)
    if runs:
        paths = (str(folder / SCORED[0]), str(folder / SCORED[1]))
        check_scores(tables["scores"], tables["predictions"], keys, runs, where=paths)
    checksums = {name: sha256_of(folder / name, largest=MAX_FILE_SIZE) for name in names}
    altered = [name for name, checksum in checksums.items() if sealed.files.get(name) != checksum]
    return Results(**tables, about=about), altered


def _check_table(table: pa.Table, schema: pa.Schema, models: Mapping[int, str], path: Path) -> None:
    """Raise DataError for other columns or runs, nulls in required columns, or overlong texts."""
    if not table.schema.equals(schema):
        raise DataError(f"its columns must be {', '.join(schema.names)}", where=str(path))
    for name in schema.names:
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
    if others := {*table["run"].unique().to_pylist()} - models.keys():
        raise DataError(f"run {min(others)} is not in {ABOUT}", where=str(path), hint="evaluate again")
    if "model" in schema.names:
        pairs = table.select(["run", "model"]).group_by(["run", "model"]).aggregate([]).to_pylist()
        if wrong := [row for row in pairs if models[row["run"]] != row["model"]]:
            message = f"run {wrong[0]['run']} has another model in {ABOUT}"
            raise DataError(message, where=str(path), hint="evaluate again")


def refuse_other_results(
    folder: Path, benchmark: str, fingerprints: Mapping[str, str | None], models: Set[tuple[str, str]]
) -> None:
    """Raise OutputError for a folder with results on another benchmark, or of another model.

    More seeds of the same models, or other detectors, may replace its results.

    Parameters
    ----------
    fingerprints : `ResultsMetadata.fingerprints`, which have to agree; None is not compared.
    models : (name, model_key) of all models.
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
    """Return the benchmark of the results in a folder; raise DataError if the folder holds no results."""
    return _read_about(folder).about.benchmark


def _models(about: ResultsMetadata) -> set[tuple[str, str]]:
    return {(run.model, run.model_key) for run in about.runs}


def _read_about(folder: Path) -> ChecksummedMetadata:
    """Return the content of ``about.json``, which is written last and removed first."""
    if not (folder / ABOUT).exists():
        if any((folder / name).exists() for name in TABLES) or any(folder.glob(f".*{files.PART}")):
            message = f"holds incomplete results: there is no {ABOUT}"
            raise DataError(message, where=str(folder), hint="run the command that wrote them again")
        raise DataError(f"no {ABOUT} here", where=str(folder), hint="give the folder that `run` wrote")
    return read_sealed(folder / ABOUT, ChecksummedMetadata, hint="evaluate again")
