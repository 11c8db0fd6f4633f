"""Match the columns of a model's output with the labels of a benchmark."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from wordnet_splits.base.errors import DataError, unknown
from wordnet_splits.base.text_formats import parse_json
from wordnet_splits.base.untrusted import read_text

from .class_map import ClassMap, Label, LabelSpace, Mode

ClassMapping = str | Path | Sequence[int] | Sequence[str] | Mapping[str, int]
"""A mapping from columns to classes, see `class_map`."""


def class_map(
    space: LabelSpace,
    width: int,
    *,
    classes: Sequence[str] | None = None,
    mapping: ClassMapping | None = None,
    restrict: str = "columns",
    background: int | str | None = None,
    where: str = "model",
) -> ClassMap:
    """Match the columns of a model's output with the labels of a benchmark.

    Parameters
    ----------
    space : the benchmark's labels.
    width : columns of the model's output.
    classes : the model's own class names or wnids, one per column (the background column may be left out).
    mapping : None: by `classes`, else column k is label k, which needs as many columns as labels;
        ``identity``: the same; a source's name: the columns are that source's classes in label
        order; one column per label; class_id -> column; one class name or wnid per column; or a file
        (.json with one of these, or text with one class per line).
    restrict : ``columns`` or ``full``, see `ClassMap`.
    background : ``last``, or the column of the background class.

    Raises
    ------
    DataError : labels without a column, or unmatched columns, which are listed.
    """
    if restrict not in ("columns", "full"):
        raise unknown("restriction", restrict, ("columns", "full"), where=where)
    dropped = _background(background, width, where)
    free = [c for c in range(width) if c != dropped]
    if isinstance(mapping, str | Path) and str(mapping) != "identity" and str(mapping) not in space.sources:
        mapping = read_mapping(Path(mapping), space)
    columns, origin = _columns(space, free, dropped, classes, mapping, where)
    return _checked(ClassMap(tuple(columns), width, cast(Mode, restrict), dropped, origin), space, where)


def read_mapping(path: Path, space: LabelSpace) -> Any:
    """Read a mapping from JSON, or from text with one class name or wnid per column."""
    if not path.is_file():
        raise unknown("mapping", str(path), ["identity", *space.sources])
    text = read_text(path)
    if path.suffix != ".json":
        return [line.strip() for line in text.splitlines() if line.strip()]
    value = parse_json(text, where=str(path))
    if not isinstance(value, list | dict):
        raise DataError("neither a list nor an object", where=str(path))
    return value


def _columns(
    space: LabelSpace,
    free: list[int],
    dropped: int | None,
    classes: Sequence[str] | None,
    mapping: Any,
    where: str,
) -> tuple[list[int], str]:
    """Return the column of each label, and the origin of the map."""
    labels = space.labels
    if mapping is None and classes is None:
        mapping = "identity"
    if mapping == "identity":
        if labels and len(free) != len(labels):  # the first columns of a wider model are other classes
            raise DataError(
                f"the model has {len(free)} classes, the benchmark {len(labels)} labels",
                where=where,
                hint="say which column is which class with --mapping: a file, or a source's name",
            )
        return free[: len(labels)], "identity"
    if mapping is None:
        return _by_name(labels, _spread(classes or (), free, dropped, where), where), "classes"
    if isinstance(mapping, str):
        return _by_name(
            labels, _spread(space.sources[mapping], free, dropped, where), where
        ), f"source:{mapping}"
    if isinstance(mapping, Mapping):
        missing = [label.class_id for label in labels if label.class_id not in mapping]
        _refuse_missing(missing, len(labels), sorted(set(mapping) - {x.class_id for x in labels}), where)
        return [int(mapping[label.class_id]) for label in labels], "given"
    if all(isinstance(entry, int | np.integer) for entry in mapping):
        if len(mapping) != len(labels):
            raise DataError(f"{len(mapping)} columns given for {len(labels)} labels", where=where)
        return [int(column) for column in mapping], "given"
    return _by_name(labels, _spread(mapping, free, dropped, where), where), "given"


def _spread(
    classes: Sequence[str], columns: list[int], dropped: int | None, where: str
) -> list[tuple[str, int]]:
    """Pair class names with columns; a background column may be named among them."""
    if dropped is not None and len(classes) == len(columns) + 1:
        classes = [name for column, name in enumerate(classes) if column != dropped]
    if len(classes) != len(columns):
        raise DataError(
            f"{len(classes)} class names for {len(columns)} columns",
            where=where,
            hint="name every column; the background column may be left out",
        )
    return list(zip(map(str, classes), columns, strict=True))


def _by_name(labels: Sequence[Label], name_columns: list[tuple[str, int]], where: str) -> list[int]:
    """Match labels with named columns by class_id or wnid, else by name, else by one of its synonyms."""
    readings: tuple[Callable[[str], list[str]], ...] = (
        lambda name: [name],
        lambda name: [_plain(name)],
        lambda name: [_plain(part) for part in name.split(",")],
    )
    tables: list[dict[str, set[int]]] = []
    for reading in readings:
        table: dict[str, set[int]] = {}
        for name, column in name_columns:
            for key in reading(name):
                table.setdefault(key, set()).add(column)
        tables.append(table)
    matches = [_find(label, tables) for label in labels]
    ambiguous = [f"{x.class_id} ({x.name})" for x, hits in zip(labels, matches, strict=True) if len(hits) > 1]
    if ambiguous:
        raise DataError(
            f"{len(ambiguous)} labels match several columns: {', '.join(ambiguous[:5])}",
            where=where,
            hint="give wnids instead of names, or the column of each label, with --mapping",
        )
    matched = {column for hits in matches for column in hits}
    missing = [f"{x.class_id} ({x.name})" for x, hits in zip(labels, matches, strict=True) if not hits]
    _refuse_missing(
        missing, len(labels), [name for name, column in name_columns if column not in matched], where
    )
    return [next(iter(hits)) for hits in matches]


def _find(label: Label, tables: Sequence[Mapping[str, set[int]]]) -> set[int]:
    exact, whole, part = tables
    attempts = [
        (exact, (label.class_id, *label.wnids)),
        (whole, (label.class_id, label.name, f"{label.name} ({label.class_id})")),  # see class_names
        (part, (label.name,)),
    ]
    for number, (table, keys) in enumerate(attempts):
        hits = {c for key in keys for c in table.get(key if number == 0 else _plain(key), ())}
        if hits:
            return hits
    return set()


def _refuse_missing(missing: Sequence[str], total: int, spare: Sequence[str], where: str) -> None:
    if missing:
        raise DataError(
            f"{len(missing)} of {total} labels have no column: {_some(missing)}; "
            f"{len(spare)} classes of the model are not labels: {_some(spare)}",
            where=where,
            hint="say which column is which class with --mapping",
        )


def _checked(result: ClassMap, space: LabelSpace, where: str) -> ClassMap:
    outside = [c for c in result.columns if not 0 <= c < result.width or c == result.background]
    if outside:
        raise DataError(
            f"columns {outside[:5]} are not classes of a {result.width}-column output", where=where
        )
    label_of: dict[int, int] = {}
    for label, column in enumerate(result.columns):
        if column in label_of:
            pair = [space.labels[i].class_id for i in (label_of[column], label)]
            raise DataError(f"labels {pair[0]} and {pair[1]} have the same column {column}", where=where)
        label_of[column] = label
    return result


def _background(background: int | str | None, width: int, where: str) -> int | None:
    if background is None:
        return None
    try:
        column = width - 1 if background == "last" else int(background)
    except ValueError:
        raise DataError(f"background {background!r} is neither 'last' nor a column", where=where) from None
    if not 0 <= column < width:
        raise DataError(f"background column {column} of an output of {width} columns", where=where)
    return column


def _plain(name: str) -> str:
    return re.sub(r"[\s_\-/]+", " ", name).strip().casefold()


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "") if names else "none"
