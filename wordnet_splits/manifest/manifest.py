"""Manifests on disk: ``classes.parquet``, ``images/<split>/<group>.parquet``, ``manifest.json``.

A manifest is looked up in the folder given, in ``WORDNET_SPLITS_MANIFESTS``, in the checkout, in the
installed package and in the Hub cache, in that order.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

import platformdirs
import pyarrow as pa
from filelock import FileLock, Timeout

from wordnet_splits.errors import ManifestError, OutputError, unknown
from wordnet_splits.manifest.data import check_data
from wordnet_splits.manifest.parquet import read_table, write_table
from wordnet_splits.manifest.tables import CLASS_SCHEMA, IMAGE_SCHEMA, check_schema

ENVIRONMENT = "WORDNET_SPLITS_MANIFESTS"
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
    """

    data: dict[str, Any]
    classes: pa.Table
    parts: dict[Part, Callable[[], pa.Table]] = field(default_factory=dict)
    folder: Path | None = None

    @property
    def name(self) -> str:
        """Return the benchmark's name, with ``@local`` or ``@seed=N`` where it applies."""
        return str(self.data["name"])

    @property
    def complete(self) -> bool:
        """Say whether nothing was left out by ``--allow-missing``."""
        return bool(self.data["complete"])

    @property
    def fingerprint(self) -> str | None:
        """Return the fingerprint of all images, None while a group awaits its source."""
        value = self.data["fingerprint"]
        return None if value is None else str(value)

    def images(self, split: str | None = None, group: str | None = None) -> pa.Table:
        """Return the image rows of a split, a group, both or all, in table order."""
        chosen = [p for p in self.parts if split in (None, p[0]) and group in (None, p[1])]
        tables = [self.parts[p]() for p in chosen]
        return pa.concat_tables(tables) if tables else IMAGE_SCHEMA.empty_table()


def manifest_folders(given: Path | None = None) -> Iterator[Path]:
    """Yield the folders that may hold manifests, first match first."""
    if given is not None:
        yield given
        return
    if ENVIRONMENT in os.environ:
        yield Path(os.environ[ENVIRONMENT])
    package = Path(str(files("wordnet_splits")))
    yield package.parent / "manifests"
    yield package / "_manifests"
    yield Path(platformdirs.user_cache_dir("wordnet-splits")) / "manifests"


def manifest_names(given: Path | None = None) -> tuple[str, ...]:
    """Return the benchmarks that have a manifest, sorted."""
    found = {
        f.parent.name
        for folder in manifest_folders(given)
        for f in folder.glob("*/manifest.json")
        if f.is_file()
    }
    return tuple(sorted(found))


def find_manifest(name: str | Path, given: Path | None = None) -> Path:
    """Return the folder of a manifest given by name or path.

    Raises
    ------
    UnknownNameError : no such manifest; near names are offered.
    """
    path = Path(name)
    if (path / "manifest.json").is_file():
        return path
    if len(path.parts) == 1:
        for folder in manifest_folders(given):
            if (folder / path / "manifest.json").is_file():
                return folder / path
    elif path.is_dir():
        raise ManifestError("no manifest.json here", where=str(path), hint="give a folder written by `build`")
    raise unknown("manifest", str(name), manifest_names(given))


def load_manifest(name: str | Path, given: Path | None = None) -> Manifest:
    """Read a manifest by name or path; image tables are read when asked for.

    Raises
    ------
    ManifestError : a file is absent or malformed, or a path in it leaves the folder.
    """
    folder = find_manifest(name, given)
    try:
        data = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ManifestError(
            f"manifest.json cannot be read: {error}", where=str(folder), hint="build it again"
        ) from None
    data = check_data(data, str(folder))
    classes = read_table(folder / "classes.parquet", error=ManifestError)
    manifest = Manifest(data, check_schema(classes, CLASS_SCHEMA, f"{folder}/classes.parquet"), {}, folder)
    for row in data["fingerprints"]["images"]:
        part = (row["split"], row["group"])
        manifest.parts[part] = _reader(folder / "images" / part[0] / f"{part[1]}.parquet")
    return manifest


def _reader(path: Path) -> Callable[[], pa.Table]:
    return lambda: check_schema(read_table(path, error=ManifestError), IMAGE_SCHEMA, str(path))


def write_manifest(manifest: Manifest, out: Path) -> Path:
    """Write a manifest to ``out/<name>`` in one step and return that folder.

    The folder is written beside its place and renamed; an interrupted write leaves the old one.
    """
    target = out / manifest.name
    partial = out / f".{manifest.name}.partial"
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        write_table(manifest.classes, partial / "classes.parquet")
        for (split, group), table in manifest.parts.items():
            path = partial / "images" / split / f"{group}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            write_table(table(), path)
        text = json.dumps(manifest.data, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
        # a root's path may hold bytes that are no UTF-8; backslashreplace writes them as JSON escapes
        (partial / "manifest.json").write_text(text, encoding="utf-8", errors="backslashreplace")
        replace_folder(partial, target)
    except OSError as error:
        raise OutputError(
            f"cannot be written: {error.strerror or error}",
            where=str(target),
            hint="check that the folder may be written to and has space left",
        ) from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return target


def replace_folder(new: Path, target: Path) -> None:
    """Put folder ``new`` in the place of ``target``; the old one is moved aside, never half deleted."""
    old = target.with_name(f".{target.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if target.exists():
        target.rename(old)
    try:
        new.rename(target)
    except OSError:
        if old.exists():
            old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


@contextmanager
def locked(out: Path, name: str) -> Iterator[None]:
    """Hold ``out/name`` for one build; a second one at the same time is refused.

    Also puts back a manifest that a kill between two renames left moved aside.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        lock = FileLock(str(out / f".{name}.lock"), timeout=0)
        lock.acquire()
    except Timeout:
        raise OutputError(
            "another build is writing here",
            where=str(out / name),
            hint="wait for it, or give another --out",
        ) from None
    except OSError as error:
        raise OutputError(
            f"cannot be written: {error.strerror or error}",
            where=str(out),
            hint="give a folder that may be written to with --out",
        ) from None
    try:
        old = out / f".{name}.old"
        if old.exists() and not (out / name).exists():
            old.rename(out / name)
        yield
    finally:
        lock.release()
