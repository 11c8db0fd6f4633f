"""Match arrays from other programs with the images of a benchmark, by id."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wordnet_splits.base.errors import DataError, unknown
from wordnet_splits.base.names import printable
from wordnet_splits.benchmark.manifest import Manifest, Part
from wordnet_splits.benchmark.resolve import load_manifest

from ..data.arrays import Array, Arrays, Head
from ..extraction.outputs import GroupOutputs
from ..models.class_map import ClassMap, LabelSpace
from ..results.rows_from_scores import EvaluatedSets
from .notes import repetition_notes
from .sets import LABELLED, digest_of, refuse_equal_sets

SHOWN = 3
"""Ids that an error shows."""


def image_ids(benchmark: Manifest | str | Path, group: str, split: str = "test") -> list[str]:
    """Return the ids of a group's images, ``SOURCE/IMAGE_ID``, in the benchmark's order.

    Raises
    ------
    UnknownNameError : no such benchmark, group or split.
    """
    manifest = load_manifest(benchmark)
    return list(full_ids(_images(manifest, (split, group))).to_pylist())


def full_ids(table: pa.Table) -> pa.Array:
    """Return ``SOURCE/IMAGE_ID`` of image rows."""
    ids = pc.binary_join_element_wise(table["source"], table["image_id"], "/")
    return ids.combine_chunks() if isinstance(ids, pa.ChunkedArray) else ids


def _images(manifest: Manifest, part: Part) -> pa.Table:
    if part not in manifest.parts:
        raise unknown("set", _set_name(part), map(_set_name, manifest.parts), where=manifest.name)
    return manifest.parts[part]()


def _set_name(part: Part) -> str:
    split, group = part
    return group if split == "test" else f"{group}/{split}"


class BenchmarkArrays:
    """The groups of a benchmark that arrays are given for.

    Attributes
    ----------
    sets : the test sets that are evaluated.
    allow_missing : whether images may lack a row.
    match_columns : (labels of the benchmark, columns of the logits) -> class map.
    left_out : sentences about images without a row.
    missing_groups : sets that have no rows.
    """

    def __init__(
        self,
        manifest: Manifest,
        groups: Sequence[str] | None,
        allow_missing: bool,
        match_columns: Callable[[LabelSpace, int], ClassMap],
    ) -> None:
        self.manifest, self.allow_missing, self.match_columns = manifest, allow_missing, match_columns
        self.sets = EvaluatedSets.from_manifest(manifest, groups)
        self.left_out: list[str] = []
        self.missing_groups: list[str] = []

    def outputs(
        self, sets: Mapping[str, tuple[dict[str, Array], dict[str, Any]]], head: Head | None
    ) -> dict[Part, GroupOutputs]:
        """Return the arrays of each set in the benchmark's order.

        Raises
        ------
        UnknownNameError : a set that the benchmark does not have. DataError : ids that are not of its images,
            images without a row, labels or columns that are not the benchmark's.
        """
        parts = {self._part(set_name): arrays_and_rows for set_name, arrays_and_rows in sets.items()}
        self._refuse_absent(parts)
        columns = self._class_map(parts)
        linear_head = None if head is None or columns is None else head.rows(columns.class_columns)
        outputs = {}
        for part, (arrays, row_facts) in parts.items():
            table, rows = self._matched(part, row_facts["ids"])
            if row_facts["labels"] is not None:
                self._check_labels(part, table, row_facts["labels"][rows])
            ordered = Arrays({name: array[rows] for name, array in arrays.items()})
            labels = None if part[0] == "test" else table["label"].to_numpy().astype(np.int64)
            if columns is not None:
                ordered = columns.arrays(ordered, labels)
            elif labels is not None:
                ordered = ordered.replace(labels=labels)
            outputs[part] = GroupOutputs(table, ordered, columns, linear_head)
        return outputs

    @staticmethod
    def repetitions(outputs: Mapping[Part, GroupOutputs]) -> list[str]:
        """Return notes on rows that sets repeat or have in common, though the benchmark's images differ."""
        images = Counter(
            digest for of in outputs.values() for digest in set(of.table["digest"].to_pylist()) - {None}
        )
        roles = {_set_name(part): of.table["role"][0].as_py() for part, of in outputs.items()}
        notes: dict[str, None] = {}
        for name in ("logits", "features"):
            rows = {
                _set_name(part): [
                    digest_of(row.tobytes())
                    for row, image in zip(of.arrays[name], of.table["digest"].to_pylist(), strict=True)
                    if images[image] < 2  # an image of two sets (CIFAR-100) has rows in both
                ]
                for part, of in outputs.items()
                if name in of.arrays
            }
            refuse_equal_sets(rows, roles, "row")
            counts = {set_name: Counter(of_set) for set_name, of_set in rows.items()}
            notes |= dict.fromkeys(repetition_notes(counts, "row"))
        return list(notes)

    def _part(self, set_name: str) -> Part:
        group, _, split = set_name.partition("/")
        part = (split or "test", group)
        _images(self.manifest, part)
        return part

    def _refuse_absent(self, parts: Mapping[Part, Any]) -> None:
        """Raise DataError, or add a note if allowed, for a set to evaluate without arrays."""
        self.missing_groups = [group for group in self.sets.test if ("test", group) not in parts]
        id_missing = [group for group in self.missing_groups if self.sets.test[group] == "id"]
        if id_missing or (self.missing_groups and not self.allow_missing):
            names = ", ".join(id_missing or self.missing_groups)
            hint = "name the sets to evaluate (groups=, --group), or leave them out (allow_missing=True)"
            raise DataError(
                f"there are no arrays for {names}",
                where=self.manifest.name,
                hint="every evaluation needs the ID sets" if id_missing else hint,
            )
        self.left_out += [f"{group}/test: all images left out: no arrays" for group in self.missing_groups]

    def _class_map(self, parts: Mapping[Part, tuple[dict[str, Array], Any]]) -> ClassMap | None:
        """Return which column of the logits is which label, None without logits."""
        for key in ("logits", "features"):
            widths = {arrays[key].shape[1] for arrays, _ in parts.values() if key in arrays}
            if len(widths) > 1:
                message = f"{key} of {' and '.join(map(str, sorted(widths)))} columns"
                raise DataError(message, where=self.manifest.name)
            if key == "logits" and widths:
                of = self.manifest
                labels = LabelSpace.of(of.classes, of.declarations, of.own_hierarchy)
                return self.match_columns(labels, widths.pop())
        return None

    def _matched(self, part: Part, ids: Sequence[str] | None) -> tuple[pa.Table, Array]:
        """Return the image rows that have arrays, and the position of each in the arrays."""
        table, where = _images(self.manifest, part), _set_name(part)
        if ids is None:
            raise DataError(
                "ids are required to match rows with images",
                where=where,
                hint=f"`unknown-eval scores ids {self.manifest.name} {part[1]}` prints them (image_ids)",
            )
        row_ids = pa.array(ids, pa.string())
        position = self._positions(table, row_ids)
        unknown_rows = np.flatnonzero(position < 0)
        if unknown_rows.size:
            raise self._not_of_the_set(part, row_ids.take(pa.array(unknown_rows)))
        if len(set(position.tolist())) < len(position):
            raise DataError("two ids identify the same image, with and without its source", where=where)
        rows = np.full(table.num_rows, -1, np.int64)
        rows[position] = np.arange(len(position))
        missing_rows = np.flatnonzero(rows < 0)
        if missing_rows.size:
            problem = f"{missing_rows.size:,} of {table.num_rows:,} images have no row"
            if not self.allow_missing:
                names = _shown(
                    full_ids(table.take(pa.array(missing_rows[:SHOWN]))).to_pylist(), missing_rows.size
                )
                hint = "give them, or leave them out: allow_missing=True (--allow-missing)"
                raise DataError(f"{problem}: {names}", where=where, hint=hint)
            self.left_out.append(
                f"{part[1]}/{part[0]}: {missing_rows.size:,} images left out: no row in the arrays"
            )
        scored_rows = np.flatnonzero(rows >= 0)
        return table.take(pa.array(scored_rows)).combine_chunks(), rows[scored_rows]

    @staticmethod
    def _positions(table: pa.Table, row_ids: pa.Array) -> Array:
        """Return the row of each id in an image table, -1 for none; ids may lack the source."""
        full = pc.index_in(row_ids, value_set=full_ids(table))
        plain = pc.index_in(row_ids, value_set=table["image_id"].combine_chunks())
        unique = pc.count_distinct(table["image_id"]).as_py() == table.num_rows
        position = pc.coalesce(full, plain) if unique else full
        return np.asarray(pc.fill_null(position, -1).to_numpy(zero_copy_only=False), dtype=np.int64)

    def _not_of_the_set(self, part: Part, unknown_ids: pa.Array) -> DataError:
        """Return the error for ids that are not in a set; it names the set that they belong to, if any."""
        names = _shown(unknown_ids[:SHOWN].to_pylist(), len(unknown_ids))
        for another in self.manifest.parts:
            if another != part and (self._positions(_images(self.manifest, another), unknown_ids) >= 0).all():
                return DataError(
                    f"{len(unknown_ids):,} ids are of {_set_name(another)}: {names}",
                    where=_set_name(part),
                    hint="are the arrays of two sets swapped?",
                )
        hint = f"`unknown-eval scores ids {self.manifest.name} {part[1]} --split {part[0]}` prints its ids"
        return DataError(
            f"{len(unknown_ids):,} ids are not images of this set: {names}", where=_set_name(part), hint=hint
        )

    def _check_labels(self, part: Part, table: pa.Table, labels: Array) -> None:
        """Raise DataError if the given labels of ID images differ from the benchmark's."""
        if table["role"][0].as_py() not in LABELLED:
            return
        expected = table["label"].to_numpy()
        wrong_rows = np.flatnonzero(labels != expected)
        if wrong_rows.size:
            row = int(wrong_rows[0])
            name = printable(full_ids(table.slice(row, 1))[0].as_py())
            raise DataError(
                f"{wrong_rows.size:,} labels are not the benchmark's: that of {name} is {expected[row]}, not "
                f"{labels[row]}",
                where=_set_name(part),
                hint="leave labels out; is mapping= needed, or are the rows in another order than the ids?",
            )


def _shown(names: Sequence[str], count: int) -> str:
    return ", ".join(map(printable, names)) + (", ..." if count > len(names) else "")
