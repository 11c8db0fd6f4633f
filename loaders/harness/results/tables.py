"""Results as tables in the layout of a benchmark's paper, from ``layouts.toml``, in any format."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

import numpy as np

from wordnet_splits.base.errors import DataError, unknown

from ..detectors.registry import find_spec, get_spec
from .metadata import ResultsMetadata
from .metric_rows import MEAN, POOLED, UNKNOWN_ROLES, factor_of, key_of_label, label_of
from .scores import MODEL, ResultTables
from .sentences import composition_lines, format_cell, lines_below
from .table import (
    NOTHING,
    Table,
    TableReport,
    tables_as_html,
    tables_as_latex,
    tables_as_markdown,
    tables_as_text,
)

TableLayout = Mapping[str, Any]
ROLES: Final = (*UNKNOWN_ROLES, "external", "csid", "id")


class ResultSets(NamedTuple):
    """The OOD sets of results: group -> role, and group -> number of images, in the benchmark's order."""

    roles: Mapping[str, str]
    sizes: Mapping[str, int]

    @classmethod
    def from_results(cls, results: ResultTables) -> ResultSets:
        """Read them from the rows of single sets."""
        roles: dict[str, str] = {}
        sizes: dict[str, int] = {}
        for row in results.rows(metric="auroc"):
            if row["group"] not in (MEAN, POOLED):
                roles.setdefault(row["group"], row["role"])
                sizes.setdefault(row["group"], row["n_ood"])
        return cls(roles, sizes)

    @property
    def pooled_role(self) -> str:
        """The role of rows over all near and far sets, as ``near+far``."""
        return "+".join(role for role in UNKNOWN_ROLES if role in self.roles.values())


@cache
def layouts() -> Mapping[str, TableLayout]:
    """Return the layouts by name, in the order that they are tried."""
    return tomllib.loads((files(str(__package__)) / "layouts.toml").read_text(encoding="utf-8"))


def layout_of(benchmark: str, name: str | None = None) -> TableLayout:
    """Return the layout of a benchmark's paper, or the layout ``name``; raise UnknownNameError if unknown."""
    if name is not None:
        if name not in layouts():
            raise unknown("layout", name, layouts())
        return layouts()[name]
    without_seed = benchmark.partition("@")[0]
    return next(layout for layout in layouts().values() if _matches(without_seed, layout["benchmarks"]))


def tables(results: ResultTables, layout: str | None = None) -> list[Table]:
    """Return the tables of a paper's layout, filled with results and, if known, the paper's rows."""
    table_layout = layout_of(results.about.benchmark, layout)
    sets = ResultSets.from_results(results)
    filled: list[Table] = []
    for spec in table_layout["table"]:
        if "needs_role" in spec and not results.rows(role=spec["needs_role"]):
            continue
        groups = [g for g, role in sets.roles.items() if role in spec["roles"]] if "per" in spec else [None]
        for group in groups:
            title = spec.get("title", table_layout["title"])
            if group is not None:
                title = title.format(group=group, n_ood=f"{sets.sizes[group]:,}")
            elif spec.get("needs_role") == "csid":
                title = title.format(shifted=", ".join(results.shifted_sets))
            columns = _columns(spec, sets, group, results.about)
            filled.append(_table(results, table_layout, {**spec, "title": title}, columns))
    for spec in _user_tables(results):
        if any(results.rows(metric=metric) for part in spec["columns"] for metric, _ in part["show"]):
            filled.append(_table(results, table_layout, spec, _columns(spec, sets, None, results.about)))
    return filled


def _user_tables(results: ResultTables) -> Iterator[Mapping[str, Any]]:
    """Yield the table of each user's metric, which no paper's layout has."""
    for facts in results.about.metrics:
        show = [[facts.name, 100]]
        over_ood = [
            {"over": "mean", "roles": UNKNOWN_ROLES, "show": show},
            {"over": "each", "roles": (*UNKNOWN_ROLES, "external"), "show": show},
            {"over": "pooled", "span": "pooled", "show": show},
        ]
        columns = over_ood if "ood" in facts.needs else [{"over": "id", "show": show}]
        better = "higher" if facts.higher_is_better else "lower"
        yield {"title": f"{facts.name}, {facts.origin}: x 100, {better} is better", "columns": columns}


def metric_summary(results: ResultTables, metric: str) -> Summary:
    """Return the table of a metric; see `Results.summary`."""
    about, metric = results.about, key_of_label(metric)
    of_metric = results.rows(metric=metric)
    if not of_metric:
        names = results.results["metric"].unique().to_pylist()
        raise unknown("metric of these results", metric, names, where=about.benchmark)
    factor, unit = factor_of(metric)
    higher, order = about.higher_is_better(metric), {role: n for n, role in enumerate(ROLES)}
    keys = dict.fromkeys((row["role"], row["group"]) for row in of_metric)
    columns = [
        Column(role, group, group, role, metric, factor, higher)
        for role, group in sorted(keys, key=lambda key: (order.get(key[0], len(order)), key[1] != MEAN))
    ]
    title = f"{about.benchmark}: {label_of(metric)}{unit}, {'higher' if higher else 'lower'} is better"
    by_model = {row["detector"] for row in of_metric} == {MODEL}
    table = _table(results, {}, {"title": title, "rows": "model" if by_model else "detector"}, columns)
    rows = [
        {"model": row["model"], "detector": row["detector"]}
        | {c.title: None if row[c.key] is None else factor * row[c.key] for c in columns}
        for row in table.rows
    ]
    return Summary(replace(table, rows=tuple(rows)))


@dataclass(frozen=True)
class Summary(TableReport):
    """A metric of every detector, as a table."""

    table: Table
    notes: tuple[str, ...] = ()

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return the means over runs, not rounded, in the unit of the table's title."""
        return self.table.rows

    def tables(self) -> list[Table]:
        """Return the table, ready to print."""
        return [self.table]


def text_of(results: ResultTables, layout: str | None = None, width: int | None = None) -> str:
    """Return the tables of a paper's layout, the benchmark's by default, and the sentences below them."""
    return tables_as_text(tables(results, layout), [*lines_below(results), *results.about.remarks], width)


def html_of(results: ResultTables) -> str:
    """Return the same for a notebook."""
    return tables_as_html(tables(results), [*lines_below(results), *results.about.remarks])


@dataclass(frozen=True)
class Column:
    """A column of a table: a metric, its direction, the group it is of, and the factor it is printed with."""

    span: str
    name: str
    group: str
    role: str | None
    metric: str
    factor: float
    higher_is_better: bool

    @property
    def title(self) -> str:
        """The heading that it shares with its neighbours, and its name."""
        return f"{self.span} {self.name}".strip()

    @property
    def key(self) -> str:
        """Its key in the rows of tables, and in the cells of published rows."""
        of_role = f"{self.role} " if self.group == MEAN else ""
        return f"{of_role}{self.group}/{self.metric}"


def _table(
    results: ResultTables, layout: TableLayout, spec: Mapping[str, Any], columns: Sequence[Column]
) -> Table:
    by_model = spec.get("rows") == "model"  # metrics that do not depend on a detector
    name_models = len(results.about.models) > 1

    def row_name(model: str, detector: str) -> tuple[str, ...]:
        return ((model,) if by_model else (model, detector)) if name_models else (detector,)

    table_values = _values(results)
    cells: list[tuple[str, ...]] = []
    rows: list[Mapping[str, Any]] = []
    notes: list[str] = []
    measured: dict[int, list[list[Measured]]] = {}
    for detector in [MODEL] if by_model else results.detectors:
        for model in results.about.models:
            values = [
                table_values.get((model, detector, c.group, c.metric), {}).get(c.role, []) for c in columns
            ]
            if not any(values):
                continue  # an ensemble of a single run
            spread_kind = spec.get("spread", "sd")
            texts = [
                format_cell([run.value for run in of_runs], c.factor, spread_kind)
                for of_runs, c in zip(values, columns, strict=True)
            ]
            measured[len(cells)] = values
            cells.append((*row_name(model, "model" if by_model else detector), *texts))
            means = {c.key: _mean(of_runs) for of_runs, c in zip(values, columns, strict=True)}
            rows.append({"model": model, "detector": detector, **means})
        for paper, published in published_rows(results, layout, detector):
            of_paper = [published.get(c.key, NOTHING) for c in columns]
            if {*of_paper} - {NOTHING}:
                cells.append((*row_name("", paper["name"]), *of_paper))
                notes.append(paper["note"])
    names = row_name("model", "" if by_model else "detector")
    titles = (*names, *(c.title for c in columns))
    bold = frozenset(_best(measured, columns, len(names)))
    rule = _bold_rule(measured, results.about.options.over) if bold else ""
    spans = (*("" for _ in names), *(c.span for c in columns))
    notes = list(dict.fromkeys(notes))
    return Table(spec["title"], titles, tuple(cells), tuple(rows), tuple(notes), bold, rule, spans)


class Measured(NamedTuple):
    """A run's value and the ends of its interval, None without a bootstrap."""

    value: float
    lo: float | None
    hi: float | None


Values = dict[tuple[str, str, str, str], dict[str | None, list[Measured]]]


def _values(results: ResultTables) -> Values:
    """Return (model, detector, group, metric) -> role -> the value of each run."""
    values: Values = {}
    columns = ("model", "detector", "group", "metric", "role", "value", "lo", "hi")
    for model, detector, group, metric, role, value, lo, hi in zip(
        *(results.results[name].to_pylist() for name in columns), strict=True
    ):
        number = np.nan if value is None else value
        values.setdefault((model, detector, group, metric), {}).setdefault(role, []).append(
            Measured(number, lo, hi)
        )
    return values


def _best(
    measured: Mapping[int, Sequence[Sequence[Measured]]], columns: Sequence[Column], first: int
) -> Iterator[tuple[int, int]]:
    """Yield (row, column) of the values that are the best of their column, or whose interval includes it.

    Parameters
    ----------
    measured : row -> the runs of each column.
    first : the column of the table that ``columns`` begin at.
    """
    for n, column in enumerate(columns):
        sign = 1 if column.higher_is_better else -1
        of_rows = ((row, _mean(cells[n])) for row, cells in measured.items())
        means = {row: sign * mean for row, mean in of_rows if mean is not None and not np.isnan(mean)}
        if len(means) < 2:
            continue  # nothing to compare with
        best = max(means.values())
        for row, mean in means.items():
            runs = measured[row][n]
            ends = [run.hi if sign > 0 else run.lo for run in runs]
            reach = [sign * end for end in ends if end is not None]
            if mean == best or (len(reach) == len(runs) and np.mean(reach) >= best):
                yield row, first + n


def _bold_rule(measured: Mapping[int, Sequence[Sequence[Measured]]], over: str) -> str:
    """Return what bold means, for the caption, given the level of the intervals."""
    runs = [of_runs for cells in measured.values() for of_runs in cells]
    if not any(run.lo is not None for of_runs in runs for run in of_runs):
        return "Bold: the best of each column; no intervals were computed"
    averaged = ", averaged over the runs of a model," if any(len(of_runs) > 1 for of_runs in runs) else ""
    return f"Bold: the best of each column, and values whose interval over {over}{averaged} includes it"


def _columns(
    spec: Mapping[str, Any], sets: ResultSets, group: str | None, about: ResultsMetadata
) -> list[Column]:
    """Return the columns of a table: those of a single set, if ``group`` is given."""
    columns = []
    for part in spec["columns"]:
        for prefix, name, role in OVER[part["over"]](sets, part.get("roles", ()), group):
            for metric, factor in part["show"]:
                higher, span = about.higher_is_better(metric), part.get("span", prefix)
                columns.append(Column(span, label_of(metric), name, role, metric, factor, higher))
    return columns


ColumnGroup = tuple[str, str, str]
"""(prefix of titles, group, role)."""


OVER: Mapping[str, Callable[[ResultSets, Sequence[str], str | None], list[ColumnGroup]]] = {
    "id": lambda sets, roles, group: [("", POOLED, "id")],
    "pooled": lambda sets, roles, group: [("", POOLED, sets.pooled_role)],
    "mean": lambda sets, roles, group: [
        (f"{role} mean", MEAN, role) for role in roles if role in sets.roles.values()
    ],
    "each": lambda sets, roles, group: [
        (name, name, role) for name, role in sets.roles.items() if role in roles
    ],
    "this": lambda sets, roles, group: [] if group is None else [("", group, sets.roles[group])],
}
"""``over`` in ``layouts.toml`` -> groups of columns, given the sets, ``roles`` and the group of the table."""


def _mean(of_runs: Sequence[Measured]) -> float | None:
    return float(np.mean([run.value for run in of_runs])) if of_runs else None


def published_rows(
    results: ResultTables, layout: TableLayout, detector: str
) -> Iterator[tuple[Mapping[str, Any], Mapping[str, str]]]:
    """Yield the paper's rows for a detector; pooled values only if the results pool all sets."""
    benchmark = results.about.benchmark
    for row in layout.get("published", ()):
        if not _matches(benchmark, row["benchmarks"]):
            continue
        if find_spec(detector.partition("[")[0]) is not get_spec(row["of"]):
            continue
        complete = not results.about.missing and benchmark in row["pooled_on"]
        yield row, {**row["cells"], **(row["pooled_cells"] if complete else {})}


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


FORMATS: Final = ("text", "latex", "markdown")


def format_tables(
    results: ResultTables, table_format: str, layout: str | None = None, width: int | None = None
) -> str:
    """Return the tables of a layout as ``text``, ``latex`` or ``markdown``.

    Captions name the sets that were not scored whole, and the roles of the layout that the results lack.

    Parameters
    ----------
    layout : by default the benchmark's paper's.
    width : largest number of characters in a line of text, None
        for any.

    Raises
    ------
    UnknownNameError : no such layout or format. DataError : none of the layout's tables can be filled.
    """
    if table_format not in FORMATS:
        raise unknown("format", table_format, FORMATS, where="--format")
    used = layout_of(results.about.benchmark, layout)
    name = next(name for name, each in layouts().items() if each is used)
    absent = " or ".join(missing_roles(results, name))
    filled = [
        table for table in tables(results, name) if table.rows and len(table.columns) > len(table.names)
    ]
    if not filled:
        message = f"the layout {name} needs {absent} sets, and the results have none"
        raise DataError(message, where=results.about.benchmark, hint="give another --layout")
    lacking = [f"The results have no {absent} set, so the layout {name} lacks its columns."] if absent else []
    notes = [*lines_below(results), *results.about.remarks]
    if table_format == "text":
        return tables_as_text(filled, [*lacking, *notes], width) + "\n"
    missing = composition_lines(results)[1:]
    filled = [replace(table, notes=(*table.notes, *lacking, *missing)) for table in filled]
    if table_format == "latex":
        return tables_as_latex(filled, notes, f"{results.about.benchmark}-{name}")
    return tables_as_markdown(filled, notes)


def missing_roles(results: ResultTables, layout: str) -> list[str]:
    """Return the roles that a layout has columns or tables for and the results have no set of."""
    specs = layouts()[layout]["table"]
    roles = dict.fromkeys(
        role for spec in specs for part in (spec, *spec["columns"]) for role in part.get("roles", ())
    )
    return [role for role in roles if role not in ResultSets.from_results(results).roles.values()]
