"""The sets of an evaluation: of a benchmark, or arrays and loaders given in Python, as a manifest in memory.

A set given in Python is named by its role, and optionally a name and a split: ``id``, ``near``,
``near:cifar10``, ``id/train``, ``external:noise/val``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.names import same_spelling
from wordnet_splits.benchmark.manifest import Manifest, Part
from wordnet_splits.benchmark.manifest.metadata import SCHEMA, check_data
from wordnet_splits.benchmark.manifest.tables import (
    CLASS_SCHEMA,
    IMAGE_SCHEMA,
    classes_fingerprint,
    evaluation_fingerprint,
    explanation_fingerprint,
    part_fingerprints,
)
from wordnet_splits.metrics.counts import to_numpy

from ..data.arrays import Array
from ..results.clusters import UNRECORDED
from ..results.rows_from_scores import ORDER

MAX_SHARED_SHARE = 0.5
"""Largest share of a set's images that an ID and an OOD set may have in common; a few get a note."""
SPLITS = ("train", "val", "test")
SET_NAME = re.compile(r"(?P<role>[a-z]+)(?::(?P<name>[A-Za-z0-9._-]+))?(?:/(?P<split>[a-z]+))?")
LABELLED = ("id", "csid")
MAX_LABEL = 2**31 - 1
NAME_THE_COLUMNS = (
    "labels are positions in the dataset's .classes, not the model's columns: give mapping= with the class "
    "of each column, or a dataset that lists every class of the model"
)


@dataclass(frozen=True)
class CustomSet:
    """One set: its labels (n,) int64 (-1 for none), and the ids and digests of its images.

    Attributes
    ----------
    digests : of the content of each image (n), equal for equal inputs.
    class_names : in label order, () where
        the dataset has none.
    """

    role: str
    group: str
    split: str
    labels: npt.NDArray[np.int64]
    ids: Sequence[str]
    digests: Sequence[str]
    class_names: tuple[str, ...] = ()

    @property
    def part(self) -> Part:
        """(split, group), as in manifests."""
        return (self.split, self.group)


def require_sets(sets: Any) -> Mapping[str, Any]:
    """Return sets unchanged; raise DataError unless they are a non-empty mapping from names."""
    hint = 'as in {"id": ..., "near": ...}'
    if not isinstance(sets, Mapping) or not all(isinstance(name, str) for name in sets):
        raise DataError(f"{type(sets).__name__} is given in place of sets by name", where="sets", hint=hint)
    if not sets:
        raise DataError("no set is given", where="sets", hint=hint)
    return sets


def parse_set_name(name: str) -> tuple[str, str, str]:
    """Return the (role, group, split) of a set's name; DataError for a malformed one."""
    match = SET_NAME.fullmatch(name)
    role, group, split = ("", None, None) if match is None else match.groups()
    if role not in ORDER or (split or "test") not in SPLITS:
        raise DataError(
            f"invalid set name {name!r}",
            where="sets",
            hint=f"ROLE, ROLE:NAME or ROLE:NAME/SPLIT, of {', '.join(ORDER)} and {', '.join(SPLITS)}",
        )
    return role, group or role, split or "test"


def digest_of(*parts: bytes) -> str:
    """Return the digest of an image's content: 16 hex digits of its BLAKE2b."""
    state = hashlib.blake2b(digest_size=8)
    for part in parts:
        state.update(part)
    return state.hexdigest()


def content_id(number: int, digest: str) -> str:
    """Return the id of an image without a name, unique by its position and its content."""
    return f"{number:08d}-{digest}"


def checked_labels(labels: Any, n: int, *, role: str, where: str) -> Array:
    """Return the labels of a set's n images, -1 for none."""
    if labels is None:
        if role in LABELLED:
            raise DataError("an ID set needs the label of each image", where=where)
        return np.full(n, -1, np.int64)
    array = to_numpy(labels, where=where)
    if array.shape != (n,) or array.dtype.kind not in "iu":
        raise DataError(f"labels of shape {array.shape} and type {array.dtype} for {n:,} images", where=where)
    if role in LABELLED and n and array.min() < 0:
        raise DataError(f"label {int(array.min())} of an ID image", where=where, hint="labels are 0 to K - 1")
    if n and array.max() > MAX_LABEL:
        raise DataError(
            f"label {int(array.max())}, the greatest is {MAX_LABEL:,}",
            where=where,
            hint="an unsigned -1? an OOD image without a label has -1, or its set no labels",
        )
    return array.astype(np.int64)


def check_class_names(class_names: Mapping[str, Sequence[str]], classes: int | None) -> None:
    """Check that labelled sets number their classes in the same way, and name every class."""
    named = {
        name: of_set for name, of_set in class_names.items() if of_set and parse_set_name(name)[0] == "id"
    }
    if named and classes is not None and classes > max(map(len, named.values())):
        set_name = max(named, key=lambda name: len(named[name]))
        raise DataError(
            f"classes = {classes}, and the dataset numbers the {len(named[set_name])} classes that it names",
            where=set_name,
            hint=NAME_THE_COLUMNS,
        )
    labels: dict[str, tuple[int, str]] = {}
    for set_name in (name for name in class_names if parse_set_name(name)[0] in LABELLED):
        for label, name in enumerate(class_names[set_name]):
            first_label, first_set = labels.setdefault(same_spelling(name), (label, set_name))
            if first_label != label:
                raise DataError(
                    f"{name!r} is label {first_label} in {first_set} and label {label} in {set_name}",
                    where="sets",
                    hint="let both datasets list the same classes in the same order (.classes; a folder that "
                    "is absent shifts later labels), or remove .classes that do not name the labels",
                )


def refuse_equal_sets(digests: Mapping[str, Sequence[str]], roles: Mapping[str, str], noun: str) -> None:
    """Raise DataError if an ID and an OOD set consist mostly of the same images."""
    distinct = {name: set(of_set) for name, of_set in digests.items()}
    for a, b in combinations(digests, 2):
        if (roles[a] in LABELLED) != (roles[b] in LABELLED):
            shared, smaller = len(distinct[a] & distinct[b]), min(len(digests[a]), len(digests[b]))
            if shared > MAX_SHARED_SHARE * smaller:
                raise DataError(
                    f"{shared:,} of {smaller:,} {noun}s of {a} and {b} are the same, though only one is ID",
                    where="sets",
                    hint="was the same set given twice?",
                )


def manifest_of_sets(sets: Sequence[CustomSet], *, name: str, classes: int | None = None) -> Manifest:
    """Return sets as a manifest in memory.

    Parameters
    ----------
    classes : K, the number of ID classes; by default the number of class names, or one more than the greatest
        ID label.
    """
    roles: dict[str, str] = {}
    for group, role in ((custom_set.group, custom_set.role) for custom_set in sets):
        if roles.setdefault(group, role) != role:
            raise DataError(f"the name {group} is used for {roles[group]} and for {role}", where=name)
    id_sets = [custom_set for custom_set in sets if custom_set.role == "id"]
    greatest = max((int(custom_set.labels.max(initial=-1)) for custom_set in id_sets), default=-1)
    name_count = max((len(custom_set.class_names) for custom_set in id_sets), default=0)
    count = max(greatest + 1, name_count) if classes is None else classes
    if greatest >= count:
        raise DataError(f"label {greatest} of {count} classes", where=name)
    tables = {custom_set.part: _image_table(custom_set) for custom_set in sets}
    of_parts, of_all = part_fingerprints(tables.values())
    class_table = _class_table(sets, count)
    class_counts = {custom_set.group: len(set(custom_set.labels.tolist())) for custom_set in sets}
    rows = [_row(group, role, "classes", class_counts[group]) for group, role in roles.items()]
    rows += [
        _row(custom_set.group, custom_set.role, custom_set.split, len(custom_set.ids)) for custom_set in sets
    ]
    recipe = {"name": name, "title": "sets given in Python"}
    data = {
        "schema": SCHEMA,
        "name": name,
        "version": 1,
        "recipe": recipe,
        "seed": 0,
        "taxonomy": {"name": "none", "version": "0", "hierarchy": "none"},
        "groups": rows,
        "fingerprint": of_all.images,
        "fingerprints": {
            "classes": classes_fingerprint(class_table),
            "explanation": explanation_fingerprint(class_table),
            "evaluation": evaluation_fingerprint(recipe, rows),
            "images": [
                {"split": split, "group": group, **vars(part_fingerprints)}
                for (split, group), part_fingerprints in zip(tables, of_parts, strict=True)
            ],
            "images_in_all": of_all.images,
            "pixels_in_all": of_all.pixels,
        },
        "leaks": [],
        "complete": True,
        "missing": [],
        "awaiting": [],
        "provenance": {},
    }
    readers: dict[Part, Callable[[], pa.Table]] = {p: partial(_identity, t) for p, t in tables.items()}
    return Manifest(check_data(data, name), class_table, readers)


def _identity(table: pa.Table) -> pa.Table:
    return table


def _image_table(custom_set: CustomSet) -> pa.Table:
    n, labelled = len(custom_set.ids), custom_set.role in LABELLED
    class_ids = [_class_id(label, custom_set.class_names) for label in custom_set.labels.tolist()]
    columns: Mapping[str, Any] = {
        "source": pa.repeat(pa.scalar(custom_set.group), n),
        "image_id": pa.array(custom_set.ids, pa.string()),
        "class_id": pa.array(class_ids, pa.string()),
        "role": pa.repeat(pa.scalar(custom_set.role), n),
        "group": pa.repeat(pa.scalar(custom_set.group), n),
        "split": pa.repeat(pa.scalar(custom_set.split), n),
        "label": pa.array(custom_set.labels if labelled else np.full(n, -1), pa.int32()),
        "view": pa.repeat(pa.scalar("raw"), n),
        "digest": pa.nulls(n, pa.binary(32)),
    }
    return pa.table(columns, schema=IMAGE_SCHEMA)


def _class_id(label: int, class_names: Sequence[str]) -> str:
    if label < 0:
        return UNRECORDED
    return class_names[label] if label < len(class_names) else str(label)


def _class_table(sets: Sequence[CustomSet], count: int) -> pa.Table:
    """Return a row for every class: labels 0 to K - 1 of the ID groups, and the labels of other groups."""
    rows: list[dict[str, Any]] = []
    for group, role in dict.fromkeys((custom_set.group, custom_set.role) for custom_set in sets):
        of_group = [custom_set for custom_set in sets if custom_set.group == group]
        labels = {int(label) for custom_set in of_group for label in np.unique(custom_set.labels)}
        class_names = next((custom_set.class_names for custom_set in of_group if custom_set.class_names), ())
        for label in sorted(labels | set(range(count)) if role == "id" else labels):
            name = _class_id(label, class_names)
            facts = {"source": group, "class_id": name, "name": name, "wnids": [], "role": role}
            id_label = label if role in LABELLED else -1
            rows.append({**facts, "group": group, "label": id_label, "rule": "", "evidence": ""})
    return pa.Table.from_pylist(rows, schema=CLASS_SCHEMA)


def _row(group: str, role: str, split: str, count: int) -> dict[str, Any]:
    counts = {"published": None, "expected": count, "actual": count, "population": None}
    texts = {"source": group, "view": "raw", "status": "complete", "note": "", "reason": ""}
    return {"group": group, "role": role, "split": split, **counts, **texts}
