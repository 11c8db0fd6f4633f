"""The tables of ``docs/evidence/robust.md``, computed from ``docs/robust.parquet``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from wordnet_splits.studies.robust import BUILT_IN

THERE = "wordnet-3.1"
"""The column of the second WordNet that the page is made with."""
READINGS = (*BUILT_IN, THERE)
ROLES = ("id", "near", "far", "external")
SHOWN = (
    *("osc-p3", "places-wordnet-t45", "rungs-cifar100", "rungs-imagenet"),
    *("unknown-cifar-clean", "unknown-imagenet", "unknown-imagenet-clean"),
)
"""Benchmarks with rows by role."""

Row = tuple[str, ...]
Class = Mapping[str, Any]


def tables(table: pa.Table) -> Iterator[list[Row]]:
    """Yield the tables of the page in order."""
    classes = table.to_pylist()
    yield [_in_all(name, classes) for name in READINGS]
    yield [
        _by_role(name, role, judged)
        for name in SHOWN
        for role in ROLES
        if (
            judged := [
                row
                for row in classes
                if (row["benchmark"], row["candidate"]) == (name, role) and row["robust"] is not None
            ]
        )
    ]


def _agrees(row: Class, reading: str) -> bool | None:
    return None if row[reading] is None else row[reading] == row["candidate"]


def _agreements(classes: Iterable[Class], reading: str) -> list[bool]:
    return [agrees for row in classes if (agrees := _agrees(row, reading)) is not None]


def _in_all(reading: str, classes: Sequence[Class]) -> Row:
    """Count, over all benchmarks, the classes that a reading applies to and the roles that it keeps."""
    agreements = _agreements([row for row in classes if row["candidate"] in ROLES], reading)
    return reading, f"{len(agreements):,}", f"{sum(agreements):,}", f"{sum(agreements) / len(agreements):.1%}"


def _by_role(benchmark: str, role: str, classes: Sequence[Class]) -> Row:
    cells = []
    for reading in READINGS:
        agreements = _agreements(classes, reading)
        cells.append(f"{sum(agreements):,}/{len(agreements):,}" if agreements else "")
    but_senses = sum(all(_agrees(row, reading) is not False for reading in READINGS[1:]) for row in classes)
    share = sum(row["robust"] for row in classes) / len(classes)
    whole = sum(row["robust"] == 1 for row in classes)
    return benchmark, role, f"{len(classes):,}", f"{whole:,}", f"{but_senses:,}", f"{share:.2f}", *cells
