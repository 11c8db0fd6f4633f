"""Class lists for pytorch-ood: ``classes.json``, the known and unknown class numbers of each source.

``TargetMapping(set(known), set(unknown))`` of pytorch-ood then maps a dataset's labels (the catalog's index)
to 0..K-1 for known classes and a negative number for unknown classes. Images are not listed: the recipe draws
them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field

from wordnet_splits.base.errors import DataError, unknown
from wordnet_splits.base.files import write_json
from wordnet_splits.base.text_formats import StrictModel, read_json, validate
from wordnet_splits.datasets.catalog import load_catalog
from wordnet_splits.datasets.sources import source_names
from wordnet_splits.exchange.exporter import ExportTask
from wordnet_splits.exchange.formats import ExchangeFormat, ImportTask, ListEntry, register_format

NAME: Final = "classes.json"
SIDES: Final = {"id": "known", "csid": "known", "near": "unknown", "far": "unknown"}
"""Role -> the list that its classes are in."""
Numbers = list[Annotated[int, Field(ge=0, le=10**9)]]


class _Group(StrictModel):
    source: str
    role: str
    classes: Numbers


class _Source(StrictModel):
    known: Numbers
    unknown: Numbers


class _File(StrictModel):
    sources: dict[str, _Source]
    groups: dict[str, _Group] = Field(default_factory=dict)


@register_format("pytorch-ood")
class PytorchOOD(ExchangeFormat):
    """Class lists."""

    about = "pytorch-ood class lists: the known and unknown class numbers of each source; no images"

    def write(self, task: ExportTask, folder: Path) -> None:
        """Write ``classes.json``; external and excluded classes are in neither list."""
        rows = task.manifest.classes.select(["source", "class_id", "role", "group"]).to_pylist()
        sources: dict[str, dict[str, list[int]]] = {}
        groups: dict[str, dict[str, object]] = {}
        numbers: dict[str, list[int]] = {}
        datasets = task.manifest.datasets
        catalogs = {name: load_catalog(name, datasets) for name in {row["source"] for row in rows}}
        for row in rows:
            number = catalogs[row["source"]][row["class_id"]].index
            lists = sources.setdefault(row["source"], {"known": [], "unknown": []})
            if kind := SIDES.get(row["role"]):
                lists[kind].append(number)
            if row["group"]:
                groups[row["group"]] = {"source": row["source"], "role": row["role"]}
                numbers.setdefault(row["group"], []).append(number)
        content = {
            "sources": {name: {k: sorted(set(v)) for k, v in s.items()} for name, s in sources.items()},
            "groups": {name: {**about, "classes": sorted(numbers[name])} for name, about in groups.items()},
        }
        write_json(folder / NAME, content)

    def read(self, task: ImportTask) -> Iterator[ListEntry]:
        """Yield an entry without an image for each class of each group, or of each list.

        Raises DataError or UnknownNameError for a source or a class number that does not exist.
        """
        path = task.path / NAME if task.path.is_dir() else task.path
        file = validate(_File, read_json(path), where=str(path))
        groups = file.groups
        if not groups:
            many_sources = len(file.sources) > 1
            groups = {
                f"{kind}-{name}" if many_sources else kind: _Group(source=name, role=role, classes=numbers)
                for name, lists in file.sources.items()
                for kind, role, numbers in (("known", "id", lists.known), ("unknown", "far", lists.unknown))
                if numbers
            }
        for name, group in groups.items():
            if group.source not in (names := source_names(task.datasets)):
                raise unknown("source", group.source, names, where=f"{path}: group {name}")
            by_number = {i.index: i.class_id for i in load_catalog(group.source, task.datasets)}
            for number in group.classes:
                if number not in by_number:
                    reason = f"{group.source} has no class {number}"
                    raise DataError(reason, where=f"{path}: group {name}", hint="0 is the publisher's first")
                class_id = by_number[number]
                yield ListEntry(
                    "", name, source=group.source, class_id=class_id, image_id="", role=group.role
                )
