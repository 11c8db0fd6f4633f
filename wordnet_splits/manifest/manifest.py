"""Manifests on disk: ``classes.parquet``, ``images/<split>/<group>.parquet``, ``manifest.json``.

A benchmark of datasets of its author's own carries them in ``sources/`` (`wordnet_splits.manifest.carried`).
Where a name leads says `wordnet_splits.manifest.finding`.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from html import escape
from pathlib import Path
from typing import Final, TypeVar

import pyarrow as pa

from wordnet_splits.catalog.own_sources import Declaration
from wordnet_splits.errors import ManifestError
from wordnet_splits.files import FileId, file_id, replacing_folder, write_json
from wordnet_splits.manifest import fingerprint
from wordnet_splits.manifest.carried import carried_files, carried_problems, read_carried, write_carried
from wordnet_splits.manifest.data import GroupRow, ManifestData, PartRow, check_data
from wordnet_splits.manifest.finding import find_manifest, shipped_folder
from wordnet_splits.manifest.fingerprint import ImagePrints
from wordnet_splits.manifest.parquet import read_table, write_table
from wordnet_splits.manifest.succession import contradictions
from wordnet_splits.manifest.tables import IMAGE_SCHEMA, check_classes, check_images
from wordnet_splits.tabular import html_table
from wordnet_splits.untrusted import read_json

COMPANIONS: Final = frozenset({"croissant.json", "README.md", ".gitattributes", ".gitignore"})
DVC: Final = ".dvc"
MOST_READS = 5
"""Times that a manifest is read anew because a build has replaced it meanwhile."""
T = TypeVar("T")
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
    folder : where it was read from, None for one just built.
    own : the datasets of its author's own that it was built from, by name; it carries them.
    """

    data: ManifestData
    classes: pa.Table = field(repr=False)
    parts: dict[Part, Callable[[], pa.Table]] = field(default_factory=dict, repr=False)
    folder: Path | None = None
    own: Mapping[str, Declaration] = field(default_factory=dict, repr=False)

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
        """Return what is known of the classes and of each split of every group, in the recipe's order."""
        return self.data.groups

    @property
    def complete(self) -> bool:
        """Say whether nothing is missing and nothing awaits its source."""
        return self.data.complete

    @property
    def fingerprint(self) -> str | None:
        """Return the fingerprint of all images, None while a group awaits its source."""
        return self.data.fingerprint

    @property
    def evaluation_fingerprint(self) -> str:
        """Return the fingerprint of what an evaluation reads beside the images."""
        return self.data.fingerprints.evaluation

    @property
    def sources_fingerprint(self) -> str | None:
        """Return the fingerprint of the datasets that it carries, None where it carries none."""
        rows = self.data.fingerprints.sources
        return fingerprint.of_rows(row.model_dump() for row in rows) if rows else None

    def images(self, split: str | None = None, group: str | None = None) -> pa.Table:
        """Return the image rows of a split, a group, both or all, in table order."""
        chosen = [p for p in self.parts if split in (None, p[0]) and group in (None, p[1])]
        tables = [self.parts[p]() for p in chosen]
        return pa.concat_tables(tables) if tables else IMAGE_SCHEMA.empty_table()

    def images_fingerprint(self, part: Part) -> str:
        """Return the fingerprint of the images of one (split, group); KeyError where there is none."""
        known: dict[Part, str] = {(row.split, row.group): row.images for row in self.data.fingerprints.images}
        return known[part]

    def pixels_fingerprint(self, part: Part) -> str | None:
        """Return the fingerprint of the pixels of one (split, group), None while a digest is unknown."""
        known: dict[Part, str | None] = {
            (row.split, row.group): row.pixels for row in self.data.fingerprints.images
        }
        return known[part]

    def class_names(self) -> list[str]:
        """Return the names of the ID classes in label order, all distinct.

        ImageNet has a bird and a machine called *crane*: such names are followed by the class id.
        """
        columns = (self.classes[name].to_pylist() for name in ("role", "label", "name", "class_id"))
        rows = zip(*columns, strict=True)
        named = {
            label: (name, class_id) for role, label, name, class_id in rows if role == "id" and label >= 0
        }
        times = Counter(name for name, _ in named.values())
        in_order = (named[label] for label in sorted(named))
        return [name if times[name] == 1 else f"{name} ({class_id})" for name, class_id in in_order]

    def source_of(self, group: str) -> str:
        """Return the source of a group; KeyError where there is none."""
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


def load_manifest(
    name: Manifest | str | Path,
    manifests: Path | None = None,
    *,
    as_shipped: bool = True,
    older: bool = False,
) -> Manifest:
    """Read a manifest by name or folder; a `Manifest` is returned as it is.

    Everything that ``manifest.json`` says of the tables is recomputed from them, here and when a table that
    has changed since is read: 1.3 million rows take about two seconds, once per process.

    Parameters
    ----------
    as_shipped : refuse what bears the name and version of a benchmark that comes with the program, and says
        otherwise.
    older : read one that was frozen before there was a fingerprint of its evaluation, too, and compute that.

    Raises
    ------
    UnknownNameError : no such manifest.
    ManifestError : a file is absent or malformed, a table is not the one that was fingerprinted, or
        ``as_shipped``.
    """
    if isinstance(name, Manifest):
        return name
    folder = find_manifest(name, manifests)
    manifest = while_steady(folder, partial(_load, folder, older))
    if as_shipped:
        check_as_shipped(manifest)
    return manifest


def _load(folder: Path, older: bool) -> Manifest:
    manifest = read_manifest(folder, older=older)
    identity = manifest_id(folder)
    for problem in altered(manifest):
        raise _altered(problem, str(folder))
    for row in manifest.data.fingerprints.images:
        part = (row.split, row.group)
        manifest.parts[part] = partial(
            _checked, manifest.parts[part], row, _path(folder, part), folder, identity
        )
    return manifest


def open_manifest(name: str | Path, manifests: Path | None = None) -> Manifest:
    """Read a manifest, comparing only what identifies its classes; its image tables are there, and unread.

    For questions to many manifests at once: evidence, distances and images are not compared. Raises as
    `load_manifest`.
    """
    folder = find_manifest(name, manifests)
    return while_steady(folder, partial(_open, folder))


def _open(folder: Path) -> Manifest:
    manifest = read_manifest(folder)
    if manifest.data.fingerprints.classes != fingerprint.of_classes(manifest.classes):
        raise _altered("the class table is not the one that was fingerprinted", str(folder))
    for problem in altered_sources(manifest):
        raise _altered(problem, str(folder))
    for part in manifest.parts:
        _file_id(_path(folder, part))
    return manifest


def manifest_id(folder: Path) -> FileId | None:
    """Return what identifies ``manifest.json``, None where there is none: another one after each build."""
    try:
        return file_id(folder / "manifest.json")
    except OSError:
        return None


def while_steady(
    folder: Path, read: Callable[[], T], *, suspect: Callable[[T], bool] = lambda result: False
) -> T:
    """Return what ``read`` makes of a manifest's folder, read again where a build replaced it meanwhile.

    Parameters
    ----------
    suspect : whether a result may come from tables of two builds; a ManifestError always may.

    Raises
    ------
    ManifestError : of ``read``, about files that nobody replaced; or the folder is replaced all the time.
    """
    for _ in range(MOST_READS):
        before = manifest_id(folder)
        try:
            result = read()
        except ManifestError:
            if manifest_id(folder) == before:
                raise
        else:
            if not suspect(result) or manifest_id(folder) == before:
                return result
    raise ManifestError(
        "is being replaced all the time", where=str(folder), hint="wait for the builds to end"
    )


def shipped_data(name: str) -> ManifestData | None:
    """Return the ``manifest.json`` of the benchmark of that name that comes with the program."""
    path = shipped_folder() / name.partition("@")[0] / "manifest.json"
    return check_data(read_json(path, error=ManifestError), str(path)) if path.is_file() else None


def check_as_shipped(manifest: Manifest) -> None:
    """Raise ManifestError for another benchmark under the name and version of one that is shipped."""
    shipped = shipped_data(manifest.name)
    if shipped is not None and (changed := contradictions(shipped, manifest.data)):
        raise ManifestError(
            f"{shipped.name} version {shipped.version} is shipped with this program, "
            f"and differs here: {'; '.join(changed[:3])}",
            where=str(manifest.folder),
            hint="it is another benchmark under its name: give it a name of its own, or raise its version",
        )


def load_classes(name: str | Path, manifests: Path | None = None) -> pa.Table:
    """Return the class table of `open_manifest`."""
    return open_manifest(name, manifests).classes


def read_manifest(folder: Path, *, older: bool = False) -> Manifest:
    """Read a manifest without comparing its fingerprints, which `altered` does. Raises as `load_manifest`."""
    check = _check_older if older else check_data
    data = check(read_json(folder / "manifest.json", error=ManifestError), f"{folder}/manifest.json")
    path = folder / "classes.parquet"
    classes = check_classes(read_table(path, error=ManifestError), str(path))
    rows = {(row.split, row.group): row for row in data.groups}
    parts = [(row.split, row.group) for row in data.fingerprints.images]
    images: dict[Part, Callable[[], pa.Table]] = {
        p: partial(_images, rows[p], _path(folder, p)) for p in parts
    }
    return Manifest(data, classes, images, folder, read_carried(folder, data.fingerprints.sources))


def _check_older(data: object, where: str) -> ManifestData:
    """Return the content of a ``manifest.json`` as `check_data`, with the fingerprint of its evaluation."""
    prints = data.get("fingerprints") if isinstance(data, dict) else None
    if not isinstance(data, dict) or not isinstance(prints, dict) or "evaluation" in prints:
        return check_data(data, where)
    checked = check_data({**data, "fingerprints": {**prints, "evaluation": "0" * 64}}, where)
    filled = checked.fingerprints.model_copy(update={"evaluation": _evaluation(checked)})
    return checked.model_copy(update={"fingerprints": filled})


def manifest_files(data: ManifestData) -> list[str]:
    """Return the paths of all files of a manifest, in its folder."""
    images = (f"images/{row.split}/{row.group}.parquet" for row in data.fingerprints.images)
    carried = (file.path for file in carried_files(data.fingerprints.sources))
    return ["manifest.json", "classes.parquet", *images, *carried]


def companions(folder: Path) -> list[Path]:
    """Return the files that may lie beside those of a manifest, sorted: of the Hub, Git and DVC."""
    return [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and (path.name in COMPANIONS or path.suffix == DVC)
    ]


def altered(manifest: Manifest) -> list[str]:
    """Return a sentence for each fingerprint or count that the tables and files do not give."""
    stored = manifest.data.fingerprints
    carried = [] if manifest.folder is None else altered_sources(manifest)
    parts, whole = _prints(manifest)
    found: list[tuple[str, object, object]] = [
        ("classes", stored.classes, fingerprint.of_classes(manifest.classes)),
        ("explanation", stored.explanation, fingerprint.of_explanation(manifest.classes)),
        ("evaluation", stored.evaluation, _evaluation(manifest.data)),
    ]
    counts = {(row.split, row.group): row.actual for row in manifest.groups}
    for row, given in zip(stored.images, parts, strict=True):
        label = f"{row.split}/{row.group}"
        found += [
            (f"actual {label}", counts[row.split, row.group], given.rows),
            (f"rows {label}", row.rows, given.rows),
            (f"images {label}", row.images, given.images),
            (f"pixels {label}", row.pixels, given.pixels),
        ]
    if not manifest.data.awaiting:
        found += [
            ("images in all", stored.images_in_all, whole.images),
            ("pixels in all", stored.pixels_in_all, whole.pixels),
        ]
    return carried + [
        f"{what}: the table gives {given}, manifest.json says {said}"
        for what, said, given in found
        if said != given
    ]


def _evaluation(data: ManifestData) -> str:
    return fingerprint.of_evaluation(data.recipe.as_dict(), (row.model_dump() for row in data.groups))


def altered_sources(manifest: Manifest) -> list[str]:
    """Return a sentence for what is wrong with each dataset that a manifest read from a folder carries."""
    folder, rows = manifest.folder or Path(), manifest.data.fingerprints.sources
    return carried_problems(folder, rows, manifest.own, manifest.classes)


_prints_of_file: dict[FileId, ImagePrints] = {}
_prints_of_files: dict[tuple[FileId, ...], ImagePrints] = {}
"""What was recomputed in this process, by what identifies the files."""


def _prints(manifest: Manifest) -> tuple[list[ImagePrints], ImagePrints]:
    if manifest.folder is None:
        return fingerprint.of_parts(read() for read in manifest.parts.values())
    files = tuple(_file_id(_path(manifest.folder, part)) for part in manifest.parts)
    if files not in _prints_of_files:
        parts, _prints_of_files[files] = fingerprint.of_parts(read() for read in manifest.parts.values())
        _prints_of_file.update(zip(files, parts, strict=True))
    return [_prints_of_file[file] for file in files], _prints_of_files[files]


def _file_id(path: Path) -> FileId:
    try:
        return file_id(path)
    except OSError as error:
        raise ManifestError(f"cannot be read: {error.strerror}", where=str(path)) from None


def _path(folder: Path | None, part: Part) -> Path:
    assert folder is not None
    return folder / "images" / part[0] / f"{part[1]}.parquet"


def _images(row: GroupRow, path: Path) -> pa.Table:
    return check_images(read_table(path, error=ManifestError), row, str(path))


def _checked(
    read: Callable[[], pa.Table], row: PartRow, path: Path, folder: Path, identity: FileId | None
) -> pa.Table:
    try:
        file, table = _file_id(path), read()
        given = _prints_of_file.get(file) or fingerprint.of_images([table])
        if given != ImagePrints(row.rows, row.images, row.pixels):
            raise _altered("it was altered since it was opened", str(path))
    except ManifestError:
        if manifest_id(folder) == identity:
            raise
        raise ManifestError(
            "was built again since it was opened, and holds other images",
            where=str(folder),
            hint="open it again",
        ) from None
    return table


def _altered(problem: str, where: str) -> ManifestError:
    return ManifestError(problem, where=where, hint="fetch it or build it again")


def write_manifest(manifest: Manifest, out: Path) -> Path:
    """Write a manifest to ``out/<name>`` in one step and return that folder; companions in it stay.

    To be called by the holder of the lock of that folder.
    """
    target = out / manifest.name
    with replacing_folder(target) as folder:
        for companion in companions(target):
            copied = folder / companion.relative_to(target)
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(companion, copied)
        write_table(manifest.classes, folder / "classes.parquet")
        for part, table in manifest.parts.items():
            write_table(table(), _path(folder, part))
        write_carried(manifest.own, manifest.data.fingerprints.sources, folder)
        write_json(folder / "manifest.json", manifest.data.as_dict())
    return target
