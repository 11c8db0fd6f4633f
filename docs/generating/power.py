"""What shipped benchmarks can show, and which gaps of published tables they resolve."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations, pairwise
from pathlib import Path
from statistics import median

import numpy as np

import wordnet_splits as ws
from generating.markdown import table
from wordnet_splits.benchmark.detectable import LEVELS, BenchmarkPower, PowerRow, figure
from wordnet_splits.benchmark.manifest.loading import manifest_names
from wordnet_splits.metrics.power import unpaired

ROOT = Path(__file__).resolve().parents[2]
DIFFERENCE = 0.02
AT = (0.6, 0.9)
"""Two values of AUROC, which determine the smallest differences at every other one."""


def lines(what: str, *names: str) -> Iterator[str]:
    """Yield the table of ``benchmarks`` or of ``leaderboards``, of all or of named benchmarks."""
    yield from {"benchmarks": benchmarks, "leaderboards": leaderboards}[what](names or manifest_names())


def benchmarks(names: Sequence[str]) -> Iterator[str]:
    """Yield a row for the near and the far sets of each frozen benchmark, at AUROC .8."""
    levels = [f"over {over}" for over in LEVELS]
    columns = ("benchmark", "role", "sets", "classes", "subtrees", *levels, f"classes for {DIFFERENCE:g}")
    rows = []
    for name in names:
        for role in ("near", "far"):
            row, sets = of_role(name, role, 0.8)
            if row is not None:
                needed = "-" if row.needed is None else f"{row.needed:,}"
                counts = (str(sets), f"{row.classes:,}", f"{row.subtrees:,}")
                cells = [figure(row.auroc[over]) + mark(name, role, over) for over in LEVELS]
                rows.append((f"`{name}`", role, *counts, *cells, needed))
    yield from table(columns, rows)


def leaderboards(names: Sequence[str]) -> Iterator[str]:
    """Yield a row for each published table and set: the gaps of AUROC in percent, and those shown."""
    columns = (
        "table",
        "benchmark",
        "set",
        "median gap",
        *(f"smallest, {over}" for over in LEVELS),
    )
    rows = []
    for paper, benchmark, name, values in published():
        if benchmark not in names:
            continue
        ordered = sorted(values.values(), reverse=True)
        neighbours, pairs = list(pairwise(ordered)), list(combinations(ordered, 2))
        middle = max(median(ordered), 0.5)
        cells, shown = [], []
        for over in LEVELS:
            smallest = smallest_at(benchmark, name, over)
            if smallest is None:
                cells.append("-")
                shown.append("-")
                continue
            told = [a - b >= smallest(max((a + b) / 2, 0.5)) for a, b in (*neighbours, *pairs)]
            cells.append(f"{100 * smallest(middle):.1f}{mark(benchmark, name, over)}")
            near, every = told[: len(neighbours)], told[len(neighbours) :]
            shown.append(f"{sum(near)}/{len(near)}, {100 * sum(every) / len(every):.0f}%")
        gap = 100 * median(a - b for a, b in neighbours)
        rows.append((paper, f"`{benchmark}`", name, f"{gap:.2f}", *cells, *shown))
    yield from table((*columns, *(f"told, {over}" for over in LEVELS)), rows)


def published() -> Iterator[tuple[str, str, str, Mapping[str, float]]]:
    """Yield paper, benchmark, set and the AUROC of each method of published tables."""
    tables = tomllib.loads((ROOT / "tools" / "pages" / "published.toml").read_text("utf-8"))
    for key, paper in (("openood", "OpenOOD v1.5, table 1"), ("kim", "Kim et al., tables 6 and 7")):
        for row in tables[key]:
            yield paper, row["benchmark"], row["set"], {n: v / 100 for n, v in row["auroc"].items()}
    layouts = tomllib.loads((ROOT / "loaders" / "harness" / "results" / "layouts.toml").read_text("utf-8"))
    found: dict[str, dict[str, float]] = {}
    for row in layouts["recalcati"]["published"]:
        for benchmark in row["pooled_on"]:
            values = found.setdefault(benchmark, {})
            values[row["of"]] = float(row["pooled_cells"]["(pooled)/auroc"]) / 100
    for benchmark, values in found.items():
        if benchmark in manifest_names() and benchmark != "places-baseline":  # a single class
            yield "Recalcati et al., table VI", benchmark, "far", values


@cache
def power(benchmark: str, auroc: float) -> BenchmarkPower:
    """Return the power of a benchmark."""
    return ws.power(benchmark, auroc=auroc, difference=DIFFERENCE)


def of_role(benchmark: str, role: str, auroc: float) -> tuple[PowerRow | None, int]:
    """Return the mean of a role, or its only set, and the number of its sets."""
    rows = [row for row in power(benchmark, auroc).sets if row.role == role]
    return (rows[-1] if rows else None), sum(row.group != "(mean)" for row in rows)


def mark(benchmark: str, name: str, over: str) -> str:
    """Return a star if a set of a role, or of ``(mean) ROLE``, is kept as it is at a level."""
    role = name.rpartition(" ")[2]
    rows = [row for row in power(benchmark, 0.8).sets if row.role == role and row.group != "(mean)"]
    kept = [row.auroc[over] is None for row in rows]
    return "\\*" if any(kept) and not all(kept) else ""


def smallest_at(benchmark: str, name: str, over: str) -> Callable[[float], float] | None:
    """Return the function from AUROC to the smallest difference of a set, or of ``(mean) ROLE``."""
    squares = []
    for auroc in AT:
        rows = power(benchmark, auroc).sets
        row = [r for r in rows if name in (r.group, r.role, f"{r.group} {r.role}")][-1]
        if row.auroc[over] is None:
            return None
        squares.append(row.auroc[over] ** 2)
    parts = np.linalg.solve([unpaired("auroc", a)[2:] for a in AT], squares)
    return lambda auroc: float(np.sqrt(parts @ unpaired("auroc", auroc)[2:]))
