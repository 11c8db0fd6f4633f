"""List folders of a dataset: never out of the root, never in circles, with clear refusals."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from wordnet_splits.errors import SourceError, UnsafeDataError

_LONE_LEVELS = 3  # root/dtd/dtd/images: archives unpacked into folders of their own name


def check_root(root: Path, name: str, *, hint: str | None = None) -> Path:
    """Return ``root`` resolved, if it is a folder that can be listed and is not empty."""
    what = f"the root of source {name}"
    try:
        folder = root.expanduser().resolve(strict=True)
        if not folder.is_dir():
            raise SourceError(f"{what} is a file, not a folder", where=str(root), hint=hint)
        with os.scandir(folder) as entries:
            if not any(not entry.name.startswith(".") for entry in entries):
                raise SourceError(f"{what} is empty", where=str(root), hint=hint)
    except FileNotFoundError as error:
        raise SourceError(f"{what} does not exist", where=str(root), hint=hint) from error
    except (OSError, RuntimeError) as error:  # RuntimeError: a loop of links, before Python 3.13
        raise _unreadable(what, str(root), error) from error
    return folder


def entries(folder: Path | str, root: Path) -> Iterator[os.DirEntry[str]]:
    """Yield the visible entries of ``folder``; a link out of ``root`` or in a circle is refused.

    Raises
    ------
    SourceError : the folder cannot be listed, or a link leads back above itself or nowhere.
    UnsafeDataError : a link leads out of ``root``.
    """
    try:
        with os.scandir(folder) as found:
            for entry in found:
                if entry.name.startswith("."):
                    continue
                if entry.is_symlink():
                    check_link(entry.path, root)
                yield entry
    except OSError as error:
        raise _unreadable("the folder", str(folder), error) from error


def check_link(path: str, root: Path) -> None:
    """Refuse a symbolic link that leaves ``root``, is broken, or makes a circle."""
    try:
        target = Path(path).resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise _unreadable("the symbolic link", path, error) from error
    if not target.is_relative_to(root):
        raise UnsafeDataError(
            f"a symbolic link leads out of the root, to {target}",
            where=path,
            hint="links are followed only inside the root: give the folder it leads to as the root",
        )
    if Path(path).parent.resolve().is_relative_to(target):
        raise SourceError(
            "a symbolic link makes a loop",
            where=path,
            hint="remove the link; it leads back to a folder above it",
        )


def subfolder(base: Path, name: str, root: Path) -> Path | None:
    """Return ``base/name`` if it is a folder, None if not; a link in ``name`` is checked as in entries."""
    path = base
    for step in Path(name).parts:
        path = path / step
        if path.is_symlink():
            check_link(str(path), root)
    try:
        return path if path.is_dir() else None
    except OSError as error:
        raise _unreadable("the folder", str(path), error) from error


def bases(root: Path, *named: str) -> list[Path]:
    """Return where below ``root`` a dataset may begin: there, in a named folder, or down a lone folder."""
    found: list[Path] = []
    level: Path | None = root
    for _ in range(_LONE_LEVELS):
        if level is None:
            break
        found += [level, *(folder for name in named if (folder := subfolder(level, name, root)))]
        level = _lone(level, root)
    return list(dict.fromkeys(found))


def _lone(folder: Path, root: Path) -> Path | None:
    try:
        with os.scandir(folder) as found:
            inside = [e for e in found if not e.name.startswith(".") and e.is_dir(follow_symlinks=False)]
    except OSError as error:
        raise _unreadable("the folder", str(folder), error) from error
    return folder / inside[0].name if len(inside) == 1 else None


def _unreadable(what: str, where: str, error: BaseException) -> SourceError:
    why = getattr(error, "strerror", None) or str(error)
    if isinstance(error, PermissionError):
        return SourceError(
            f"{what} cannot be read: permission denied", where=where, hint="check its permissions"
        )
    if "loop" in str(error).lower() or "Too many levels" in str(error):
        return SourceError(f"{what} makes a loop", where=where, hint="remove the link")
    return SourceError(f"{what} cannot be read: {why}", where=where)
