"""Audits of sets by name: the function behind ``fix-resize audit``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from fix_resize.auditing.audit import Report, run_audit
from fix_resize.auditing.sets import open_pictures
from wordnet_splits.progress import Progress


def audit_named(
    pictures: Path | str,
    *,
    reference: Path | str = "cifar100:test",
    originals: Path | str | None = None,
    roots: Mapping[str, Path | str] = MappingProxyType({}),
    limit: int | None = None,
    progress: Progress | None = None,
) -> Report:
    """Look for what a resizer left behind in a set of pictures.

    Parameters
    ----------
    pictures, reference : a folder, ``BENCHMARK:GROUP[:SPLIT]``, ``DIR:GROUP[:SPLIT]`` or ``SOURCE:SPLIT``.
    originals : what the pictures were made from, under their names.
    roots : folder of each source.
    limit : so many pictures of a set, drawn by a hash.

    Raises
    ------
    SplitsError : a set is absent, cannot be read, or has no picture to compare.
    """
    folders = {name: Path(folder) for name, folder in roots.items()}
    return run_audit(
        open_pictures(str(pictures), folders),
        open_pictures(str(reference), folders),
        None if originals is None else open_pictures(str(originals), folders, original=True),
        limit=limit,
        progress=progress,
    )
