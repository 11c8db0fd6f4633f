"""Manifests: ``classes.parquet``, ``images/<split>/<group>.parquet``, ``manifest.json``.

A benchmark of declared datasets carries them in ``sources/``, and the tables of pairs of its recipe in
``pairs/`` (`wordnet_splits.benchmark.manifest.carried`). `wordnet_splits.benchmark.manifest.loading` reads
folders, `wordnet_splits.benchmark.resolve` resolves names and addresses.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Final

import pyarrow as pa

from wordnet_splits.base.files import FileId, replacing_folder, write_json
from wordnet_splits.base.parquet import write_table
from wordnet_splits.base.tabular import html_table
from wordnet_splits.benchmark.manifest.carried import carried_files, write_carried
from wordnet_splits.benchmark.manifest.metadata import GroupRow, ManifestData, PartRow
from wordnet_splits.benchmark.manifest.tables import IMAGE_SCHEMA, rows_fingerprint
from wordnet_splits.datasets.catalog.declarations import Declaration, Sources
from wordnet_splits.datasets.catalog.own_hierarchy import OwnHierarchy

COMPANIONS: Final = frozenset({"croissant.json", "CHANGELOG.md", "README.md", ".gitattributes", ".gitignore"})
DVC: Final = ".dvc"
Part = tuple[str, str]
"""(split, group): one image table."""


@dataclass
class Manifest:
    """A benchmark's class table, image tables and ``manifest.json``.

    Attributes
    ----------
    data : the content of ``manifest.json``.
    classes : the class table (`tables.CLASS_SCHEMA`).
    parts : functions returning the image table of each (split, group), in table order.
    folder : the folder that it was read from; None for a build in memory.
    declarations : the declared datasets that it carries, by name.
    pair_tables : the paths of the tables of pairs that it carries, by their names in the recipe.
    own_hierarchy : the hierarchy that it carries, in place of WordNet; None for WordNet.
    identity : identity of the ``manifest.json`` that was read; each build writes another file.
    """

    data: ManifestData
    classes: pa.Table = field(repr=False)
    parts: dict[Part, Callable[[], pa.Table]] = field(default_factory=dict, repr=False)
    folder: Path | None = None
    declarations: Mapping[str, Declaration] = field(default_factory=dict, repr=False)
    pair_tables: Mapping[str, Path] = field(default_factory=dict, repr=False)
    own_hierarchy: OwnHierarchy | None = field(default=None, repr=False)
    identity: FileId | None = field(default=None, repr=False, compare=False)

    @property
    def datasets(self) -> Sources:
        """The benchmark's datasets; DataError if this machine declares another under the same name."""
        return Sources.of(self.declarations, hierarchy=self.own_hierarchy)

    @property
    def name(self) -> str:
        """Return the benchmark's name, with ``@local`` or ``@seed=N`` where it applies."""
        return self.data.name

    @property
    def version(self) -> int:
        """Return the benchmark's version."""
        return self.data.version

    @property
    def groups(self) -> Sequence[GroupRow]:
        """Return the rows for the classes and each split of every group, in the recipe's order."""
        return self.data.groups

    @property
    def complete(self) -> bool:
        """Whether no image is missing and no source is required."""
        return self.data.complete

    @property
    def fingerprint(self) -> str | None:
        """Return the fingerprint of all images, None if the images of a group are unknown."""
        return self.data.fingerprint

    @property
    def evaluation_fingerprint(self) -> str:
        """Return the fingerprint of the inputs of an evaluation other than images."""
        return self.data.fingerprints.evaluation

    @property
    def sources_fingerprint(self) -> str | None:
        """Return the fingerprint of the datasets and hierarchy that it carries, None if it carries none."""
        prints = self.data.fingerprints
        rows = [row for row in (*prints.sources, prints.hierarchy) if row is not None]
        return rows_fingerprint(row.model_dump() for row in rows) if rows else None

    def images(self, split: str | None = None, group: str | None = None) -> pa.Table:
        """Return the image rows of a split, a group, both or all, in table order."""
        selected = [p for p in self.parts if split in (None, p[0]) and group in (None, p[1])]
        tables = [self.parts[p]() for p in selected]
        return pa.concat_tables(tables) if tables else IMAGE_SCHEMA.empty_table()

    def images_fingerprint(self, part: Part) -> str:
        """Return the fingerprint of the images of a (split, group). Raises KeyError for an unknown one."""
        return self._part_row(part).images

    def pixels_fingerprint(self, part: Part) -> str | None:
        """Return the fingerprint of the pixels of a (split, group), None if a digest is unknown."""
        return self._part_row(part).pixels

    def _part_row(self, part: Part) -> PartRow:
        rows: dict[Part, PartRow] = {(row.split, row.group): row for row in self.data.fingerprints.images}
        return rows[part]

    def class_names(self) -> list[str]:
        """Return the names of the ID classes in label order, all distinct.

        ImageNet has a bird and a machine called *crane*: such names are followed by the class id.
        """
        classes = self.id_classes()
        times = Counter(name for _, name, _ in classes)
        return [name if times[name] == 1 else f"{name} ({class_id})" for class_id, name, _ in classes]

    def id_classes(self) -> list[tuple[str, str, tuple[str, ...]]]:
        """Return the class id, name and wnids of the ID classes in label order."""
        columns = ("role", "label", "class_id", "name", "wnids")
        by_label = {
            label: (class_id, name, tuple(wnids or ()))
            for role, label, class_id, name, wnids in zip(
                *(self.classes[name].to_pylist() for name in columns), strict=True
            )
            if role == "id" and label is not None and label >= 0
        }
        return [by_label[label] for label in sorted(by_label)]

    def source_of(self, group: str) -> str:
        """Return the source of a group. Raises KeyError for an unknown one."""
        return {row.group: row.source for row in self.groups}[group]

    def __repr__(self) -> str:
        lines = [f"{self.name} version {self.version}, fingerprint {self.fingerprint or 'not known yet'}"]
        for row in self.groups:
            count = "?" if row.actual is None else f"{row.actual:,}"
            lines.append(
                f"  {row.group:24} {row.role:9} {row.source:14} {row.split:8} {count:>9} {row.status}"
            )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        columns = ("group", "role", "source", "split", "published", "expected", "actual", "status")
        rows = [{name: getattr(row, name) for name in columns} for row in self.groups]
        return f"<p>{escape(self.name)} version {self.version}</p>" + html_table(rows)


def manifest_files(data: ManifestData) -> list[str]:
    """Return the paths of all files of a manifest, in its folder."""
    images = (f"images/{row.split}/{row.group}.parquet" for row in data.fingerprints.images)
    carried = (file.path for file in carried_files(data.fingerprints))
    return ["manifest.json", "classes.parquet", *images, *carried]


def companions(folder: Path) -> list[Path]:
    """Return the files of the Hub, Git and DVC in a manifest's folder, sorted."""
    return [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and (path.name in COMPANIONS or path.suffix == DVC)
    ]


def part_path(folder: Path, part: Part) -> Path:
    """Return the path of the image table of a (split, group)."""
    return folder / "images" / part[0] / f"{part[1]}.parquet"


def write_manifest(manifest: Manifest, out: Path) -> Path:
    """Write a manifest to ``out/<name>`` in one step and return that folder; companions in it stay.

    The caller holds the lock of that folder.
    """
    target = out / manifest.name
    with replacing_folder(target) as folder:
        for companion in companions(target):
            copied = folder / companion.relative_to(target)
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(companion, copied)
        write_table(manifest.classes, folder / "classes.parquet")
        for part, table in manifest.parts.items():
            write_table(table(), part_path(folder, part))
        write_carried(
            manifest.data.fingerprints,
            folder,
            manifest.declarations,
            manifest.pair_tables,
            manifest.own_hierarchy,
        )
        write_json(folder / "manifest.json", manifest.data.as_dict())
    return target
