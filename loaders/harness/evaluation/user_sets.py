"""Sets that nobody froze, a user's arrays or loaders, as a manifest in memory: what an evaluation goes by.

A set is named by its role, and by a name and a split where there are several: ``id``, ``near``,
``near:cifar10``, ``id/train``, ``external:noise/val``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from wordnet_splits.base.errors import DataError
from wordnet_splits.manifest import Manifest, Part
from wordnet_splits.manifest import fingerprint as fingerprints
from wordnet_splits.manifest.data import SCHEMA, check_data
from wordnet_splits.manifest.tables import CLASS_SCHEMA, IMAGE_SCHEMA
from wordnet_splits.metrics.counts import to_numpy

from ..arrays import Array
from .sets import ORDER

SPLITS = ("train", "val", "test")
SET_NAME = re.compile(r"(?P<role>[a-z]+)(?::(?P<name>[A-Za-z0-9._-]+))?(?:/(?P<split>[a-z]+))?")
LABELLED = ("id", "csid")
GREATEST_LABEL = 2**31 - 1


@dataclass(frozen=True)
class OwnSet:
    """One set: its place, its labels (n,) int64 (-1 for none), and the ids and digests of its images.

    ``digests`` : of what is known of each image (n), equal for equal inputs. ``names`` : of the labels in
    order, () where its dataset says none.
    """

    role: str
    group: str
    split: str
    labels: npt.NDArray[np.int64]
    ids: Sequence[str]
    digests: Sequence[str]
    names: tuple[str, ...] = ()

    @property
    def part(self) -> Part:
        """(split, group), as manifests have it."""
        return (self.split, self.group)


def named_sets(given: Any) -> Mapping[str, Any]:
    """Return sets by name as they are.

    Raises
    ------
    DataError : they are no mapping of names, or empty.
    """
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        what = f"{type(given).__name__} is given in place of sets by name"
        raise DataError(what, where="sets", hint='as in {"id": ..., "near": ...}')
    if not given:
        raise DataError("no set is given", where="sets", hint='as in {"id": ..., "near": ...}')
    return given


def place_of(text: str) -> tuple[str, str, str]:
    """Return (role, group, split) of a set's name.

    Raises
    ------
    DataError : it is no such name.
    """
    found = SET_NAME.fullmatch(text)
    role, name, split = ("", None, None) if found is None else found.groups()
    if role not in ORDER or (split or "test") not in SPLITS:
        raise DataError(
            f"{text!r} names no set",
            where="sets",
            hint=f"ROLE, ROLE:NAME or ROLE:NAME/SPLIT, of {', '.join(ORDER)} and {', '.join(SPLITS)}",
        )
    return role, name or role, split or "test"


def digest_of(*parts: bytes) -> str:
    """Return what stands for the content of an image: 16 hex digits of its BLAKE2b."""
    state = hashlib.blake2b(digest_size=8)
    for part in parts:
        state.update(part)
    return state.hexdigest()


def content_id(number: int, digest: str) -> str:
    """Name an image that nobody named: by its place and its content, so that no other passes for it."""
    return f"{number:08d}-{digest}"


def labels_of(given: Any, n: int, *, role: str, where: str) -> Array:
    """Return the labels of a set's n images, -1 for none.

    Raises
    ------
    DataError : an ID set without labels, or labels of another number or kind.
    """
    if given is None:
        if role in LABELLED:
            raise DataError("an ID set needs the label of each image", where=where)
        return np.full(n, -1, np.int64)
    labels = to_numpy(given, where=where)
    if labels.shape != (n,) or labels.dtype.kind not in "iu":
        raise DataError(
            f"labels of shape {labels.shape} and type {labels.dtype} for {n:,} images", where=where
        )
    if role in LABELLED and n and labels.min() < 0:
        raise DataError(
            f"label {int(labels.min())} of an ID image", where=where, hint="labels are 0 to K - 1"
        )
    if n and labels.max() > GREATEST_LABEL:
        raise DataError(
            f"label {int(labels.max())}, the greatest is {GREATEST_LABEL:,}",
            where=where,
            hint="an unsigned -1? an OOD image without a label has -1, or its set no labels",
        )
    return labels.astype(np.int64)


def refuse_reordered_classes(names: Mapping[str, Sequence[str]]) -> None:
    """Refuse labelled sets in which one class has two labels: their datasets list classes in other orders.

    Parameters
    ----------
    names : set -> names of its classes in label order, () where its dataset says none.

    Raises
    ------
    DataError : they are such; a class is named.
    """
    first: dict[str, tuple[int, str]] = {}
    for text in (text for text in names if place_of(text)[0] in LABELLED):
        for label, name in enumerate(names[text]):
            before, other = first.setdefault(name, (label, text))
            if before != label:
                raise DataError(
                    f"{name!r} is label {before} in {other} and label {label} in {text}",
                    where="sets",
                    hint="let both datasets list the same classes in the same order (.classes), "
                    "or remove .classes",
                )


def own_manifest(sets: Sequence[OwnSet], *, name: str, classes: int | None = None) -> Manifest:
    """Return sets as a manifest in memory.

    Parameters
    ----------
    classes : K, the number of ID classes; by default that of their names, or one more than the greatest ID
        label.

    Raises
    ------
    DataError : two sets of one name, a group of two roles, or a label beyond ``classes``.
    """
    roles: dict[str, str] = {}
    for one in sets:
        if roles.setdefault(one.group, one.role) != one.role:
            raise DataError(
                f"the name {one.group} is used for {roles[one.group]} and for {one.role}", where=name
            )
    greatest = max((int(one.labels.max(initial=-1)) for one in sets if one.role == "id"), default=-1)
    names = next((len(one.names) for one in sets if one.role == "id" and one.names), 0)
    count = max(greatest + 1, names) if classes is None else classes
    if greatest >= count:
        raise DataError(f"label {greatest} of {count} classes", where=name)
    tables = {one.part: _images(one) for one in sets}
    of_parts, of_all = fingerprints.of_parts(tables.values())
    known = _classes(sets, count)
    held = {one.group: len(set(one.labels.tolist())) for one in sets}
    rows = [_row(group, role, "classes", held[group]) for group, role in roles.items()]
    rows += [_row(one.group, one.role, one.split, len(one.ids)) for one in sets]
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
            "classes": fingerprints.of_classes(known),
            "explanation": fingerprints.of_explanation(known),
            "evaluation": fingerprints.of_evaluation(recipe, rows),
            "images": [
                {"split": split, "group": group, **vars(prints)}
                for (split, group), prints in zip(tables, of_parts, strict=True)
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
    return Manifest(check_data(data, name), known, {part: _Held(t) for part, t in tables.items()})


@dataclass(frozen=True)
class _Held:
    table: pa.Table

    def __call__(self) -> pa.Table:
        return self.table


def _images(one: OwnSet) -> pa.Table:
    n, labelled = len(one.ids), one.role in LABELLED
    columns: Mapping[str, Any] = {
        "source": pa.repeat(pa.scalar(one.group), n),
        "image_id": pa.array(one.ids, pa.string()),
        "class_id": pa.array([_class_id(label, one.names) for label in one.labels.tolist()], pa.string()),
        "role": pa.repeat(pa.scalar(one.role), n),
        "group": pa.repeat(pa.scalar(one.group), n),
        "split": pa.repeat(pa.scalar(one.split), n),
        "label": pa.array(one.labels if labelled else np.full(n, -1), pa.int32()),
        "view": pa.repeat(pa.scalar("raw"), n),
        "digest": pa.nulls(n, pa.binary(32)),
    }
    return pa.table(columns, schema=IMAGE_SCHEMA)


def _class_id(label: int, names: Sequence[str]) -> str:
    if label < 0:
        return "all"
    return names[label] if label < len(names) else str(label)


def _classes(sets: Sequence[OwnSet], count: int) -> pa.Table:
    """Return a row for every class: labels 0 to K - 1 of the ID groups, and what labels the others have."""
    rows: list[dict[str, Any]] = []
    for group, role in dict.fromkeys((one.group, one.role) for one in sets):
        found = {int(label) for one in sets if one.group == group for label in np.unique(one.labels)}
        names = next((one.names for one in sets if one.group == group and one.names), ())
        for label in sorted(found | set(range(count)) if role == "id" else found):
            known = label if role in LABELLED else -1
            name = _class_id(label, names)
            about = {"source": group, "class_id": name, "name": name, "wnids": []}
            rows.append({**about, "role": role, "group": group, "label": known, "rule": "", "evidence": ""})
    return pa.Table.from_pylist(rows, schema=CLASS_SCHEMA)


def _row(group: str, role: str, split: str, count: int) -> dict[str, Any]:
    counts = {"published": None, "expected": count, "actual": count, "population": None}
    texts = {"source": group, "view": "raw", "status": "complete", "note": "", "reason": ""}
    return {"group": group, "role": role, "split": split, **counts, **texts}
