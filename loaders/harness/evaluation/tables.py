"""Results as tables in the layout of a benchmark's paper; the layouts are data, in ``layouts.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from wordnet_splits.errors import SplitsError, unknown
from wordnet_splits.metrics import spread

from ..detectors import get_method
from .derive import MODEL
from .measure import MEAN, POOLED, UNKNOWN_ROLES
from .results import Results

DIGITS = 2
NOTHING = "-"
Layout = Mapping[str, Any]


@dataclass(frozen=True)
class Column:
    """A column of a table: a metric over something, and the factor it is printed with."""

    title: str
    group: str
    role: str | None
    metric: str
    factor: float

    @property
    def key(self) -> str:
        """How cells of published rows name it."""
        return f"{self.group}/{self.metric}"


@dataclass(frozen=True)
class Table:
    """A table ready to print.

    Attributes
    ----------
    columns : their titles. rows : text, one per column.
    numbers : of each detector's row the means over runs, fractions, by "group/metric".
    notes : to be printed below.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: tuple[Mapping[str, Any], ...] = field(default=())
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the table as ``--json`` prints it."""
        rows = [dict(row) for row in self.numbers]
        return {"title": self.title, "columns": self.columns, "rows": rows, "notes": self.notes}


class Sets(NamedTuple):
    """The sets of the results: group -> role, and group -> number of images, in the benchmark's order."""

    roles: Mapping[str, str]
    sizes: Mapping[str, int]

    @classmethod
    def of(cls, results: Results) -> Sets:
        """Read them from the rows of single sets."""
        roles: dict[str, str] = {}
        sizes: dict[str, int] = {}
        for row in results.rows(metric="auroc"):
            if row["group"] not in (MEAN, POOLED):
                roles.setdefault(row["group"], row["role"])
                sizes.setdefault(row["group"], row["n_ood"])
        return cls(roles, sizes)


@cache
def layouts() -> Mapping[str, Layout]:
    """Return the layouts by name, in the order in which they are tried."""
    return tomllib.loads((files(str(__package__)) / "layouts.toml").read_text(encoding="utf-8"))


def layout_of(benchmark: str, name: str | None = None) -> Layout:
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


def tables(results: Results, layout: str | None = None) -> list[Table]:
    """Return the tables of a paper's layout, filled with results and, where known, the paper's own rows."""
    chosen = layout_of(str(results.about["benchmark"]), layout)
    sets = Sets.of(results)
    made: list[Table] = []
    for spec in chosen["table"]:
        if "needs_role" in spec and not results.rows(role=spec["needs_role"]):
            continue
        subjects = [g for g, role in sets.roles.items() if role in spec["roles"]] if "per" in spec else [None]
        made += [_table(results, sets, chosen, spec, subject) for subject in subjects]
    return made


def composition_lines(results: Results) -> list[str]:
    """Return what `aurc_unknown` was computed over, and which sets are missing from it, as sentences."""
    about = results.about["composition"]
    sizes = ", ".join(f"{name} {n:,}" for name, n in about["sets"].items())
    share = f"{about['prevalence']:.1%} OOD"
    lines = [f"AURC pools {sizes}: {about['n_id']:,} ID and {about['n_ood']:,} OOD images, {share}."]
    for row in results.about["missing"]:
        of = "" if row["expected"] is None else f" of {row['expected']:,}"
        why = f" ({row['status']})" if row["status"].startswith("awaiting") else ""
        lines.append(f"Missing: {row['group']} ({row['role']}), {row['scored']:,}{of} images scored{why}.")
    if results.about["missing"]:
        lines.append(
            "So this AURC is over other images than the benchmark's and is compared with no paper's."
        )
    return lines


def summary_lines(results: Results) -> list[str]:
    """Return AURC at the stated prevalences, and how AUROC follows nearness, detector by detector."""
    lines = []
    for share in results.about["options"]["prevalences"]:
        found = _by_detector(results, f"aurc_unknown[prevalence={share:g}]", 1000)
        if found:
            lines.append(f"AURC x 1000 if {share:.0%} were OOD: {found}.")
    trend = _by_detector(results, "nearness_trend", 1)
    if trend:
        lines.append(
            f"AUROC against similarity to the nearest ID class (rank correlation over OOD classes): {trend}."
        )
    return lines


def _by_detector(results: Results, metric: str, factor: float) -> str:
    found: dict[str, list[float]] = {}
    for row in results.rows(metric=metric, group=POOLED):
        found.setdefault(row["detector"], []).append(row["value"])
    cells = {name: _cell(values, factor, "sd") for name, values in found.items()}
    return ", ".join(f"{name} {cell}" for name, cell in cells.items() if cell != NOTHING)


def _table(
    results: Results, sets: Sets, layout: Layout, spec: Mapping[str, Any], subject: str | None
) -> Table:
    columns = [column for part in spec["columns"] for column in _columns(part, sets, subject)]
    title = spec.get("title", layout["title"])
    if subject is not None:
        title = title.format(group=subject, n_ood=f"{sets.sizes[subject]:,}")
    names = [MODEL] if spec.get("rows") == "model" else results.detectors
    found = _values(results)
    text, numbers, notes = [], [], []
    for name in names:
        values = [found.get((name, c.group, c.metric), {}).get(c.role, []) for c in columns]
        shown = [_cell(v, c.factor, spec.get("spread", "sd")) for v, c in zip(values, columns, strict=True)]
        text.append(("model" if name == MODEL else name, *shown))
        numbers.append({"detector": name, **_means(values, columns)})
        for paper, cells in _published(results, layout, name):
            text.append((paper["name"], *(cells.get(c.key, NOTHING) for c in columns)))
            notes.append(paper["note"])
    first = "" if names == [MODEL] else "detector"
    titles = (first, *(c.title for c in columns))
    return Table(title, titles, tuple(text), tuple(numbers), tuple(dict.fromkeys(notes)))


Values = dict[tuple[str, str, str], dict[str | None, list[float]]]


def _values(results: Results) -> Values:
    """(detector, group, metric) -> role -> the value of each run."""
    found: Values = {}
    columns = ("detector", "group", "metric", "role", "value")
    for detector, group, metric, role, value in zip(
        *(results.results[name].to_pylist() for name in columns), strict=True
    ):
        found.setdefault((detector, group, metric), {}).setdefault(role, []).append(value)
    return found


def _columns(part: Mapping[str, Any], sets: Sets, subject: str | None) -> Iterator[Column]:
    for before, group, role in OVER[part["over"]](sets, part.get("roles", ()), subject):
        for title, metric, factor in part["show"]:
            yield Column(f"{before} {title}".strip(), group, role, metric, factor)


Place = tuple[str, str, str]
"""(what titles begin with, group, role)."""


def _id(sets: Sets, roles: Sequence[str], subject: str | None) -> list[Place]:
    return [("", POOLED, "id")]


def _pooled(sets: Sets, roles: Sequence[str], subject: str | None) -> list[Place]:
    return [("", POOLED, "+".join(r for r in UNKNOWN_ROLES if r in sets.roles.values()))]


def _mean(sets: Sets, roles: Sequence[str], subject: str | None) -> list[Place]:
    return [(f"{role} mean", MEAN, role) for role in roles if role in sets.roles.values()]


def _each(sets: Sets, roles: Sequence[str], subject: str | None) -> list[Place]:
    return [(group, group, role) for group, role in sets.roles.items() if role in roles]


def _this(sets: Sets, roles: Sequence[str], subject: str | None) -> list[Place]:
    return [("", subject, sets.roles[subject])] if subject is not None else []


OVER: Mapping[str, Callable[[Sets, Sequence[str], str | None], list[Place]]] = {
    "id": _id,
    "pooled": _pooled,
    "mean": _mean,
    "each": _each,
    "this": _this,
}


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


def _published(
    results: Results, layout: Layout, detector: str
) -> Iterator[tuple[Mapping[str, Any], Mapping[str, str]]]:
    """Yield the paper's rows for a detector; pooled values only beside a pool with every set in it."""
    benchmark = str(results.about["benchmark"])
    for row in layout.get("published", ()):
        if not _matches(benchmark, row["benchmarks"]) or not _same(detector, row["of"]):
            continue
        whole = not results.about["missing"] and benchmark in row["pooled_on"]
        yield row, {**row["cells"], **(row["pooled_cells"] if whole else {})}


def _same(label: str, name: str) -> bool:
    try:
        return get_method(label.partition("[")[0]) is get_method(name)
    except SplitsError:  # a user's own detector, which no paper has
        return False


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
