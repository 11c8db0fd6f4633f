"""The tables of ``docs/robust.md``, computed from ``docs/robust.parquet``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from wordnet_splits.studies.robust.roles import BUILT_IN
from wordnet_splits.wordnet.taxonomy import load

THERE = "wordnet-3.1"
"""The column of the other WordNet that the page is made with."""
READINGS = (*BUILT_IN, THERE)
ROLES = ("id", "near", "far", "external")
SHOWN = 8
"""Classes named of those that a reading turns."""
TURNED = (
    *("unknown-imagenet", "unknown-cifar-clean", "rungs-imagenet", "rungs-cifar100"),
    *("places-wordnet-t45", "places-typical-t1", "osc-p1", "osc-p2", "osc-p3", "osc-p3-dag"),
)
"""Benchmarks of which the turned classes are named."""
KNOWN_NAMES = (
    *(("unknown-imagenet", name) for name in ("crane", "jay", "hen", "lynx", "pug", "drake")),
    *(("unknown-imagenet", name) for name in ("trailer truck", "black widow", "spider monkey", "cab")),
    *(("rungs-cifar100", name) for name in ("ray", "skunk", "seal", "mouse", "wolf", "rocket")),
)
"""Classes whose other senses are shown."""

Row = tuple[str, ...]
Class = Mapping[str, Any]


def tables(table: pa.Table) -> Iterator[list[Row]]:
    """Yield the tables of the page in order."""
    classes = table.to_pylist()
    yield [_in_all(name, classes) for name in READINGS]
    by_benchmark: dict[str, list[Class]] = {}
    for row in classes:
        by_benchmark.setdefault(row["benchmark"], []).append(row)
    judged_of = {name: [c for c in of if c["robust"] is not None] for name, of in by_benchmark.items()}
    yield [
        _by_role(name, role, of)
        for name, judged in judged_of.items()
        for role in ROLES
        if (of := [c for c in judged if c["candidate"] == role])
    ]
    yield [(name, f"{len(of):,}") for name, of in by_benchmark.items() if not judged_of[name]]
    yield [
        (name, reading, f"{len(turned):,}", _named(turned, reading))
        for name in TURNED
        for reading in READINGS[1:]
        if (
            turned := [c for c in judged_of[name] if c["candidate"] in ROLES and _agrees(c, reading) is False]
        )
    ]
    yield [row for name, called in KNOWN_NAMES for row in _senses(name, called, by_benchmark[name])]


def _agrees(row: Class, reading: str) -> bool | None:
    return None if row[reading] is None else row[reading] == row["candidate"]


def _agreements(classes: Iterable[Class], reading: str) -> list[bool]:
    return [agrees for row in classes if (agrees := _agrees(row, reading)) is not None]


def _in_all(reading: str, classes: Sequence[Class]) -> Row:
    """Return the number of classes of all benchmarks to which a reading applies, and of kept roles."""
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


def _named(turned: Sequence[Class], reading: str) -> str:
    names = [f"{_text(row['name'])} ({row['candidate']} > {row[reading]})" for row in turned[:SHOWN]]
    return ", ".join([*names, *(["..."] if len(turned) > SHOWN else [])])


def _senses(benchmark: str, called: str, classes: Sequence[Class]) -> Iterator[Row]:
    taxonomy = load()
    for row in classes:
        if row["name"] == called and row["turning_sense"]:
            wnid = row["turning_sense"]
            meaning = f"{taxonomy.name(wnid)}: {_text(taxonomy.definition(wnid))}"
            yield benchmark, called, row["candidate"], row["sense"], meaning


def _text(words: str) -> str:
    return words.replace("_", " ").replace("|", "/")
