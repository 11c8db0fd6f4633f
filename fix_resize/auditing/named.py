"""Audits of sets by name: the function behind ``fix-resize audit``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from fix_resize.auditing.audit import Report, run_audit
from fix_resize.auditing.plots import require_plots
from fix_resize.auditing.sets import open_pictures
from wordnet_splits.base.errors import OutputError
from wordnet_splits.base.progress import Progress
from wordnet_splits.sources.roots import Roots


def audit(
    pictures: Path | str,
    *,
    reference: Path | str = "cifar100:test",
    originals: Path | str | None = None,
    roots: Roots = MappingProxyType({}),
    limit: int | None = None,
    out: Path | str | None = None,
    progress: Progress | None = None,
) -> Report:
    """Look for what a resizer left behind in a set of pictures.

    Parameters
    ----------
    pictures, reference : a folder, ``BENCHMARK:GROUP[:SPLIT]``, ``DIR:GROUP[:SPLIT]`` or ``SOURCE:SPLIT``.
    originals : what the pictures were made from, under the same names.
    roots : folder of each source.
    limit : pictures to take of each set, drawn by a hash of their ids; all by default.
    out : folder for scores, histogram and images; needs matplotlib.

    Raises
    ------
    OutputError : ``out`` lies inside a set being audited, or cannot be written.
    SplitsError : a set is absent, cannot be read, or has no picture to compare.
    """
    folders = {name: Path(folder) for name, folder in roots.items()}
    if out is not None:
        check_out(Path(out), [str(name) for name in (pictures, reference, originals) if name is not None])
    subject = open_pictures(str(pictures), folders)
    against = open_pictures(str(reference), folders)
    taken = None if originals is None else open_pictures(str(originals), folders, original=True)
    report = run_audit(subject, against, taken, limit=limit, progress=progress)
    if out is None:
        return report
    from fix_resize.auditing.output import write_report

    return replace(report, files=tuple(write_report(report, subject, taken, Path(out))))


def check_out(out: Path, sets: Iterable[str]) -> None:
    """Refuse to draw without matplotlib, or into a set, where the next audit would find the drawings."""
    require_plots()
    for place in map(Path, sets):
        if place.is_dir() and out.resolve().is_relative_to(place.resolve()):
            raise OutputError("lies inside an audited set", where=str(out), hint="give a folder beside it")
