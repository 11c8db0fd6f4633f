"""Results as tables in the layout of a benchmark's paper, from ``layouts.toml``."""

from __future__ import annotations

import json
import textwrap
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from wordnet_splits.base.errors import SplitsError, unknown
from wordnet_splits.base.names import printable
from wordnet_splits.base.tabular import GAP, NARROWEST, html_table, text_table
from wordnet_splits.metrics import spread

from ..detectors import get_spec
from .metric_rows import MEAN, POOLED, UNKNOWN_ROLES
from .schema import MODEL, ResultTables

DIGITS = 2
NOTHING = "-"
NAMES = frozenset(
    {"", "model", "detector", "group", "run", "than", "against", "mean of", "measure", "nearness to"}
)
"""Titles of columns of text; all others hold numbers."""
TableLayout = Mapping[str, Any]


@dataclass(frozen=True)
class Column:
    """A column of a table: a metric, the group it is of, and the factor it is printed with."""

    title: str
    group: str
    role: str | None
    metric: str
    factor: float

    @property
    def key(self) -> str:
        """Its key in the cells of published rows."""
        return f"{self.group}/{self.metric}"


@dataclass(frozen=True)
class Table:
    """A table ready to print.

    Attributes
    ----------
    columns : their titles. cells : text, rows of one per column.
    numbers : of each model's and detector's row the means over runs, fractions, by "group/metric".
    notes : to be printed below.
    """

    title: str
    columns: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    numbers: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def right(self) -> tuple[str, ...]:
        """Titles of the columns of numbers, which are aligned right."""
        return tuple(name for name in self.columns if name not in NAMES)

    def folded(self, width: int | None) -> list[Table]:
        """Return tables of at most ``width`` characters (None: any), each with the names of the rows.

        Long names, to be wrapped when printed, take half of the width: numbers stand together.
        """
        if width is None:
            return [self]
        widths = [max(map(len, column)) for column in zip(self.columns, *self.cells, strict=True)]
        names = len(self.columns) - len(self.right)
        least = max(width // 2, names * (NARROWEST + len(GAP)))
        named = min(sum(each + len(GAP) for each in widths[:names]), least)
        blocks: list[list[int]] = [[]]
        for column in range(names, len(self.columns)):
            taken = named + sum(widths[n] + len(GAP) for n in blocks[-1])
            if blocks[-1] and taken + widths[column] > width:
                blocks.append([])
            blocks[-1].append(column)
        shown = [(*range(names), *block) for block in blocks]
        return [
            replace(self, columns=_at(self.columns, n), cells=tuple(_at(row, n) for row in self.cells))
            for n in shown
        ]

    def as_dict(self) -> dict[str, Any]:
        """Return the table as ``--json`` prints it."""
        rows = [dict(row) for row in self.numbers]
        return {"title": self.title, "columns": self.columns, "rows": rows, "notes": self.notes}


def _at(row: Sequence[str], places: Sequence[int]) -> tuple[str, ...]:
    return tuple(row[n] for n in places)


class Sets(NamedTuple):
    """The sets of the results: group -> role, and group -> number of images, in the benchmark's order."""

    roles: Mapping[str, str]
    sizes: Mapping[str, int]

    @classmethod
    def of(cls, results: ResultTables) -> Sets:
        """Read them from the rows of single sets."""
        roles: dict[str, str] = {}
        sizes: dict[str, int] = {}
        for row in results.rows(metric="auroc"):
            if row["group"] not in (MEAN, POOLED):
                roles.setdefault(row["group"], row["role"])
                sizes.setdefault(row["group"], row["n_ood"])
        return cls(roles, sizes)


@cache
def layouts() -> Mapping[str, TableLayout]:
    """Return the layouts by name, in the order in which they are tried."""
    return tomllib.loads((files(str(__package__)) / "layouts.toml").read_text(encoding="utf-8"))


def layout_of(benchmark: str, name: str | None = None) -> TableLayout:
    """Return the layout of a benchmark's paper, or the one of that name.

    Raises
    ------
    UnknownNameError : no such layout.
    """
    if name is not None:
        if name not in layouts():
            raise unknown("layout", name, layouts())
        return layouts()[name]
    plain = benchmark.partition("@")[0]
    return next(one for one in layouts().values() if _matches(plain, one["benchmarks"]))


def tables(results: ResultTables, layout: str | None = None) -> list[Table]:
    """Return the tables of a paper's layout, filled with results and, where known, the paper's own rows."""
    chosen = layout_of(results.about.benchmark, layout)
    sets = Sets.of(results)
    made: list[Table] = []
    for spec in chosen["table"]:
        if "needs_role" in spec and not results.rows(role=spec["needs_role"]):
            continue
        subjects = [g for g, role in sets.roles.items() if role in spec["roles"]] if "per" in spec else [None]
        made += [_table(results, sets, chosen, spec, subject) for subject in subjects]
    return made


def lines_below(results: ResultTables) -> list[str]:
    """Return what is printed below the tables, as sentences.

    Which models these are, and over which runs the tables average; the values that sweeps chose; what
    `aurc_unknown` was computed over and which sets are missing from it; AURC at the stated prevalences; how
    AUROC follows nearness.
    """
    return [
        *(_model_line(results, model) for model in results.about.models),
        *_chosen_lines(results),
        *composition_lines(results),
        *_summary_lines(results),
    ]


def _all_below(results: ResultTables) -> list[str]:
    """Return those, and what was left out or is to be noted: `unknown-eval run` says that on stderr."""
    return [*lines_below(results), *results.about.remarks]


def _model_line(results: ResultTables, model: str) -> str:
    runs = results.about.runs_of(model)
    transforms = dict.fromkeys(words for run in runs for words in run.transforms.values() if words)
    weights = dict.fromkeys(run.weights for run in runs if len(runs) == 1 and run.weights)
    facts = [
        *(f"weights {origin}" for origin in weights),
        *(f"transform {words}" for words in transforms),
        *(f"on {device}" for device in dict.fromkeys(run.device for run in runs) if device),
    ]
    if len(runs) > 1:
        names = ", ".join(run.name.removeprefix(model).lstrip("-/ ") for run in runs)
        facts.insert(0, f"mean over {len(runs)} runs and their spread ({names})")
    return f"Model {model}: {'; '.join(facts) or 'one run'}."


def _chosen_lines(results: ResultTables) -> Iterator[str]:
    """Say which values a sweep chose, detector by detector and run by run."""
    chosen: dict[tuple[str, str, str], dict[int, str]] = {}
    names = ("model", "detector", "run", "params", "chosen_on")
    for model, detector, run, params, on in zip(
        *(results.results[name].to_pylist() for name in names), strict=True
    ):
        if on is not None:
            values = ", ".join(f"{key}={value}" for key, value in json.loads(params).items())
            chosen.setdefault((model, detector, on), {})[run] = values
    for (model, detector, on), by_run in chosen.items():
        each = list(by_run.values())
        values = each[0] if len(set(each)) == 1 else " | ".join(each)
        of = f" of {model}" if len(results.about.models) > 1 else ""
        yield f"Chosen for {detector}{of} by {on}: {values}."


def composition_lines(results: ResultTables) -> list[str]:
    """Return what `aurc_unknown` was computed over, and which sets are missing from it, as sentences."""
    pooled, missing = results.about.composition, results.about.missing
    sizes = ", ".join(f"{name} {n:,}" for name, n in pooled.sets.items())
    share = f"{pooled.prevalence:.1%} OOD"
    lines = [f"AURC pools {sizes}: {pooled.n_id:,} ID and {pooled.n_ood:,} OOD images, {share}."]
    for row in missing:
        of = "" if row.expected is None else f" of {row.expected:,}"
        why = f" ({row.status})" if row.status.startswith("awaiting") else ""
        lines.append(f"Missing: {row.group} ({row.role}), {row.scored:,}{of} images scored{why}.")
    if missing:
        lines.append(
            "So this AURC is over other images than the benchmark's and is compared with no paper's."
        )
    return lines


def _summary_lines(results: ResultTables) -> Iterator[str]:
    """Yield AURC at the stated prevalences, and how AUROC follows nearness, detector by detector."""
    for share in results.about.options.prevalences:
        found = _by_detector(results, f"aurc_unknown[prevalence={share:g}]", 1000)
        if found:
            yield f"AURC x 1000 if {share:.0%} were OOD: {found}."
    if trend := _by_detector(results, "nearness_trend", 1):
        over = f"rank correlation over OOD classes{_without_synset(results)}"
        yield f"AUROC against similarity to the nearest ID class ({over}): {trend}."


def _without_synset(results: ResultTables) -> str:
    """Say how many OOD classes are in no bin of similarity and in no rank correlation; "" for none."""
    sizes = {
        (row["group"], row["class_id"]): (row["similarity"], row["n_ood"])
        for row in results.by_class.select(["group", "class_id", "similarity", "n_ood"]).to_pylist()
    }
    unmapped = [n_ood for similarity, n_ood in sizes.values() if similarity is None]
    if not unmapped:
        return ""
    return f"; without a synset, left out: {len(unmapped):,} of {len(sizes):,} ({sum(unmapped):,} images)"


def _by_detector(results: ResultTables, metric: str, factor: float) -> str:
    several = len(results.about.models) > 1
    found: dict[str, list[float]] = {}
    for row in results.rows(metric=metric, group=POOLED):
        name = f"{row['model']} {row['detector']}" if several else row["detector"]
        found.setdefault(name, []).append(row["value"])
    cells = {name: _cell(values, factor, "sd") for name, values in found.items()}
    return ", ".join(f"{name} {cell}" for name, cell in cells.items() if cell != NOTHING)


def text_of(results: ResultTables, layout: str | None = None, width: int | None = None) -> str:
    """Return the tables of a paper's layout and what belongs below them.

    Parameters
    ----------
    layout : the benchmark's by default. width : characters of a line, over which tables are folded and
        sentences wrapped; None: any.
    """
    parts = []
    for made in tables(results, layout):
        folded = [line for part in made.folded(width) for line in _lines(part, width)]
        parts.append("\n".join([*_wrapped([made.title], width), *folded, *_wrapped(made.notes, width)]))
    return "\n\n".join([*parts, "\n".join(_wrapped(_all_below(results), width))])


def _lines(table: Table, width: int | None) -> list[str]:
    columns, *cells = [[printable(cell) for cell in row] for row in (table.columns, *table.cells)]
    return text_table(columns, cells, right=[*map(printable, table.right)], width=width)[0]


def _wrapped(texts: Iterable[str], width: int | None) -> Iterator[str]:
    for text in texts:
        shown = printable(text, len(text))
        yield from [shown] if width is None else textwrap.wrap(shown, width, break_on_hyphens=False)


def html_of(results: ResultTables) -> str:
    """Return the same for a notebook."""
    parts = []
    for table in tables(results):
        rows = [dict(zip(table.columns, row, strict=True)) for row in table.cells]
        parts += [f"<p>{escape(table.title)}</p>", html_table(rows)]
        parts += [f"<p>{escape(note)}</p>" for note in table.notes]
    return "".join([*parts, *(f"<p>{escape(line)}</p>" for line in _all_below(results))])


def _table(
    results: ResultTables, sets: Sets, layout: TableLayout, spec: Mapping[str, Any], subject: str | None
) -> Table:
    columns = [column for part in spec["columns"] for column in _columns(part, sets, subject)]
    title = spec.get("title", layout["title"])
    if subject is not None:
        title = title.format(group=subject, n_ood=f"{sets.sizes[subject]:,}")
    of_model = spec.get("rows") == "model"  # what needs no detector
    several = len(results.about.models) > 1

    def named(model: str, detector: str) -> tuple[str, ...]:
        """What a row is called."""
        return ((model,) if of_model else (model, detector)) if several else (detector,)

    found = _values(results)
    cells, numbers, notes = [], [], []
    for detector in [MODEL] if of_model else results.detectors:
        for model in results.about.models:
            values = [found.get((model, detector, c.group, c.metric), {}).get(c.role, []) for c in columns]
            if not any(values):
                continue  # an ensemble of one run
            spread_as = spec.get("spread", "sd")
            shown = [_cell(v, c.factor, spread_as) for v, c in zip(values, columns, strict=True)]
            cells.append((*named(model, "model" if of_model else detector), *shown))
            numbers.append({"model": model, "detector": detector, **_means(values, columns)})
        for paper, published in published_rows(results, layout, detector):
            cells.append((*named("", paper["name"]), *(published.get(c.key, NOTHING) for c in columns)))
            notes.append(paper["note"])
    titles = (*named("model", "" if of_model else "detector"), *(c.title for c in columns))
    return Table(title, titles, tuple(cells), tuple(numbers), tuple(dict.fromkeys(notes)))


Values = dict[tuple[str, str, str, str], dict[str | None, list[float]]]


def _values(results: ResultTables) -> Values:
    """(model, detector, group, metric) -> role -> the value of each run."""
    found: Values = {}
    columns = ("model", "detector", "group", "metric", "role", "value")
    for model, detector, group, metric, role, value in zip(
        *(results.results[name].to_pylist() for name in columns), strict=True
    ):
        found.setdefault((model, detector, group, metric), {}).setdefault(role, []).append(value)
    return found


def _columns(part: Mapping[str, Any], sets: Sets, subject: str | None) -> Iterator[Column]:
    for before, group, role in OVER[part["over"]](sets, part.get("roles", ()), subject):
        for title, metric, factor in part["show"]:
            yield Column(f"{before} {title}".strip(), group, role, metric, factor)


SetPlace = tuple[str, str, str]
"""(what titles begin with, group, role)."""


OVER: Mapping[str, Callable[[Sets, Sequence[str], str | None], list[SetPlace]]] = {
    "id": lambda sets, roles, subject: [("", POOLED, "id")],
    "pooled": lambda sets, roles, subject: [
        ("", POOLED, "+".join(r for r in UNKNOWN_ROLES if r in sets.roles.values()))
    ],
    "mean": lambda sets, roles, subject: [
        (f"{role} mean", MEAN, role) for role in roles if role in sets.roles.values()
    ],
    "each": lambda sets, roles, subject: [
        (group, group, role) for group, role in sets.roles.items() if role in roles
    ],
    "this": lambda sets, roles, subject: [] if subject is None else [("", subject, sets.roles[subject])],
}
"""What columns are over, see ``layouts.toml`` -> the places of a table's sets, roles and subject."""


def _cell(values: Sequence[float], factor: float, kind: str) -> str:
    """Mean over runs, with their spread where there are several; a dash where there is no value."""
    if not values or any(np.isnan(values)):
        return NOTHING
    digits = DIGITS if factor > 1 else DIGITS + 2
    found = spread(np.array(values) * factor, ddof=0 if kind == "variance" else 1)
    text = f"{found.mean:.{digits}f}"
    if found.n == 1:
        return text
    return f"{text} ({found.sd**2:.{digits}f})" if kind == "variance" else f"{text}±{found.sd:.{digits}f}"


def _means(values: Sequence[Sequence[float]], columns: Sequence[Column]) -> dict[str, Any]:
    """Means over runs as fractions, by group and metric."""
    return {c.key: float(np.mean(v)) if len(v) else None for v, c in zip(values, columns, strict=True)}


def published_rows(
    results: ResultTables, layout: TableLayout, detector: str
) -> Iterator[tuple[Mapping[str, Any], Mapping[str, str]]]:
    """Yield the paper's rows for a detector; pooled values only beside a pool with every set in it."""
    benchmark = results.about.benchmark
    for row in layout.get("published", ()):
        if not _matches(benchmark, row["benchmarks"]) or not _same(detector, row["of"]):
            continue
        whole = not results.about.missing and benchmark in row["pooled_on"]
        yield row, {**row["cells"], **(row["pooled_cells"] if whole else {})}


def _same(label: str, name: str) -> bool:
    try:
        return get_spec(label.partition("[")[0]) is get_spec(name)
    except SplitsError:  # a user's own detector, of no paper
        return False


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
