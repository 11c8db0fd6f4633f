"""Extraction as an array job: every job computes a share of all shards, and a merge puts them together.

Job i of n writes to ``<store>/parts/<i>-of-<n>/``, which is a store with some shards of each group, and
``part.json``, written last: the groups of the whole array job, which determine the share of each job.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from wordnet_splits.base.digests import digest_json
from wordnet_splits.base.jsonable import Jsonable
from wordnet_splits.base.progress import Progress, Relabelled, Silent
from wordnet_splits.base.text_formats import Sha256, StrictModel, read_sealed, write_sealed

from ..models.reproducibility import current_ranks
from ..models.transforms import choose_transform
from ..probes import probe_name
from .activations import extract_shards
from .extractor import BenchmarkImages, Extractor, Plan
from .outputs import Store, image_names
from .stored_list import FORWARD, StoredList, StoreError, list_key

PARTS, PART = "parts", "part.json"
MOST_SHARDS = 1_000_000
"""Largest number of shards of an array job (a model has 3,500 on ImageNet-21K)."""
SHOWN = 8
"""Missing parts that a message names."""


class PlannedGroup(StrictModel):
    """One model on one list of images: its keys, its number of images, and the units to compute."""

    model_key: Sha256
    transform_key: Sha256
    list_key: Sha256
    n: int = Field(ge=1)
    units: tuple[str, ...] = Field(strict=False)

    def stored_in(self, store: Store) -> StoredList:
        """Return the list of a store."""
        return store.list_at(self.model_key, self.transform_key, self.list_key, n=self.n)


class PartRecord(StrictModel):
    """``part.json``: a finished part of an array job.

    Attributes
    ----------
    index, count : job ``index`` (from 1) of ``count``.
    shard_rows : rows of every shard but the last.
    groups : every group of the whole job.
    """

    version: Literal[1] = Field(alias="schema")
    index: int = Field(ge=1)
    count: int = Field(ge=1)
    shard_rows: int = Field(ge=1)
    groups: tuple[PlannedGroup, ...] = Field(strict=False)

    @model_validator(mode="after")
    def _bounded(self) -> PartRecord:
        if self.index > self.count:
            raise ValueError(f"part {self.index} of {self.count}")
        if sum(-(-group.n // self.shard_rows) for group in self.groups) > MOST_SHARDS:
            raise ValueError(f"more than {MOST_SHARDS:,} shards")
        return self

    @property
    def job(self) -> str:
        """Key of the whole array job."""
        return digest_json(self.model_dump(mode="json", exclude={"index"}))

    def share(self) -> dict[int, list[int]]:
        """Return the shards of this part: number of the group -> numbers of the shards.

        Consecutive shards with about as many images for each job; all models of a shard come one after the
        other, so that most images are decoded in one job only.
        """
        pieces = list(self._pieces())
        total = sum(len(rows) for _, _, rows in pieces)
        shards: dict[int, list[int]] = {}
        before = 0
        for number, shard, rows in pieces:
            if (2 * before + len(rows)) * self.count // (2 * total) == self.index - 1:
                shards.setdefault(number, []).append(shard)
            before += len(rows)
        return shards

    def _pieces(self) -> Iterator[tuple[int, int, range]]:
        """Yield (group, shard, rows) in the order that distributes them over the parts."""
        for images in dict.fromkeys((group.list_key, group.n) for group in self.groups):
            for start in range(0, images[1], self.shard_rows):
                for number, group in enumerate(self.groups):
                    if (group.list_key, group.n) == images:
                        stop = min(start + self.shard_rows, group.n)
                        yield number, start // self.shard_rows, range(start, stop)


@dataclass(frozen=True)
class ComputedPart(Jsonable):
    """A finished part: its folder, and the number of shards and of forward passes of an image in it."""

    folder: Path
    shards: int
    images: int


@dataclass(frozen=True)
class MergedParts(Jsonable):
    """Number of parts merged, and of the shards in them, each unit of a shard counted."""

    parts: int
    shards: int


def extract_part(
    plans: Sequence[tuple[Extractor, Plan]],
    store: Store,
    index: int,
    count: int,
    progress: Progress | None = None,
) -> ComputedPart:
    """Compute part ``index`` of ``count`` of the arrays that an evaluation of some models needs.

    Raises
    ------
    StoreError : the part's folder holds a part of another job.
    """
    part_store = Store(store.root / PARTS / f"{index}-of-{count}", store.shard_rows)
    planned = [
        (part, extractor, extractor.probes(*part, plan[part]))
        for part in dict.fromkeys(part for _, plan in plans for part in plan)
        for extractor, plan in plans
        if part in plan
    ]
    groups = []
    for part, extractor, probes in planned:
        assert isinstance(extractor.images, BenchmarkImages)
        images = extractor.images.group(*part)
        groups.append(
            PlannedGroup(
                model_key=extractor.model.key,
                transform_key=choose_transform(extractor.model, images).key,
                list_key=list_key(image_names(images.table)),
                n=len(images),
                units=(FORWARD, *map(probe_name, probes)),
            )
        )
    record = PartRecord(schema=1, index=index, count=count, shard_rows=store.shard_rows, groups=tuple(groups))
    path = part_store.root / PART
    if path.exists() and read_sealed(path, PartRecord, error=StoreError).job != record.job:
        raise StoreError("belongs to another job", where=str(path), hint="merge or delete it first")
    share = record.share()
    for part in dict.fromkeys(part for part, _, _ in planned):
        numbers = [number for number, (of, _, _) in enumerate(planned) if of == part and number in share]
        if not numbers:
            continue
        first = planned[numbers[0]][1]
        assert isinstance(first.images, BenchmarkImages)
        extract_shards(
            [(planned[number][1].model, planned[number][2]) for number in numbers],
            first.images.group(*part),
            part_store,
            [share[number] for number in numbers],
            batch_size=first.batch_size,
            workers=first.workers,
            progress=Relabelled(progress or Silent(), f"shard {index}/{count}: {'/'.join(reversed(part))}"),
        )
    if current_ranks().first:
        write_sealed(path, record.model_dump(mode="json", by_alias=True))
    rows = sum(
        min((shard + 1) * store.shard_rows, groups[number].n) - shard * store.shard_rows
        for number, shards in share.items()
        for shard in shards
    )
    return ComputedPart(part_store.root, sum(map(len, share.values())), rows)


def merge_parts(store: Store, *, keep: bool = False) -> MergedParts:
    """Copy the shards of a complete array job into a store, and remove the parts unless ``keep``.

    Raises
    ------
    StoreError : a part is missing, there twice, unfinished or of another job, or a file was altered, or the
        folder of parts is a link, and not ``keep``; then the store is as it was.
    """
    parts_folder = store.root / PARTS
    if parts_folder.is_symlink() and not keep:
        hint = "--keep leaves the parts where they are (keep=True)"
        raise StoreError("is a link: parts behind it are not removed", where=str(parts_folder), hint=hint)
    parts = _complete_parts(parts_folder)
    groups = parts[0][1].groups
    checked: list[tuple[StoredList, str, int, StoredList]] = []
    for folder, record in parts:
        part_store = Store(folder, record.shard_rows)
        for number, shards in record.share().items():
            source, target = (groups[number].stored_in(at) for at in (part_store, store))
            if source.about.shard_rows != record.shard_rows:
                raise StoreError("has shards of another size", where=str(source.folder))
            for unit in groups[number].units:
                for shard in shards:
                    source.verify(unit, shard)
                    checked.append((source, unit, shard, target))
    for source, unit, shard, target in checked:
        with target.locked():
            target.adopt(source, unit, shard)
    if not keep:
        shutil.rmtree(parts_folder)
    return MergedParts(len(parts), len(checked))


def _complete_parts(folder: Path) -> list[tuple[Path, PartRecord]]:
    """Return a job's parts in order; StoreError if a part is missing or repeated."""
    hint = "run the job of that number again, with the same options"
    parts: dict[int, tuple[Path, PartRecord]] = {}
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        if not (path / PART).is_file():
            raise StoreError("is not finished: there is no part.json", where=str(path), hint=hint)
        record = read_sealed(path / PART, PartRecord, error=StoreError)
        first_path, first = next(iter(parts.values()), (path, record))
        if record.job != first.job:
            raise StoreError(
                f"belongs to another job than {first_path.name}: other images, models, detectors or count",
                where=str(path),
            )
        if record.index in parts:
            twice = f"shard {record.index}/{record.count} is there twice"
            raise StoreError(f"{twice}: {parts[record.index][0].name} and {path.name}", where=str(folder))
        parts[record.index] = path, record
    if not parts:
        hint = "run `unknown-eval run ... --shard 1/8`; if they are merged already, leave out --merge"
        raise StoreError("there are no parts", where=str(folder), hint=hint)
    count = next(iter(parts.values()))[1].count
    if missing := count - len(parts):  # each part's file records the number of parts
        absent = (f"{index}/{count}" for index in range(1, count + 1) if index not in parts)
        names = ", ".join(islice(absent, SHOWN)) + (", ..." if missing > SHOWN else "")
        raise StoreError(f"{missing} of {count} shards are missing: {names}", where=str(folder), hint=hint)
    return [parts[index] for index in sorted(parts)]
