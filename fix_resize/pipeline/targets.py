"""The sets that can be built by name, and the function behind ``fix-resize build``."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, cast, get_args

from fix_resize.pipeline.cluster import check_address
from fix_resize.pipeline.formats import get_format
from fix_resize.pipeline.pipeline import SHARD_SIZE, Built, PipelineSettings
from fix_resize.pipeline.pipeline import build as build_worklist
from fix_resize.pipeline.selection import (
    NAMED,
    Identify,
    Worklist,
    select_folder,
    select_manifest,
    select_named,
)
from fix_resize.resize import why_not
from fix_resize.spec import ResizeSpec, get_spec
from wordnet_splits.base.errors import SplitsError, unknown
from wordnet_splits.base.progress import Progress, Silent
from wordnet_splits.base.untrusted import expand_home
from wordnet_splits.sources.roots import Roots

BACKENDS: Final = ("auto", "pillow", "numba", "numpy")
FOLDER: Final = "folder"


def _select_folder(*, roots: Mapping[str, Path], allow_missing: bool) -> Worklist:
    if FOLDER not in roots:
        raise SplitsError("one folder is needed", where="--root", hint="--root DIR")
    return select_folder(roots[FOLDER])


@dataclass(frozen=True)
class Target:
    """A set that can be built: how it is selected, the options of its own, and its source if it has one."""

    select: Callable[..., Worklist]
    takes: tuple[str, ...] = ()
    source: str | None = None


TARGETS: Final = {
    "lsun": Target(partial(select_named, "lsun"), ("per_class", "local"), NAMED["lsun"].source),
    "tiny-imagenet": Target(
        partial(select_named, "tiny-imagenet"), ("local",), NAMED["tiny-imagenet"].source
    ),
    "from-manifest": Target(select_manifest, ("benchmark", "groups", "splits", "local")),
    "folder": Target(_select_folder, source=FOLDER),
}

_FLAGS: Final = {
    "benchmark": "benchmark",
    "groups": "--group",
    "splits": "--split",
    "per_class": "--per-class",
    "local": "--local",
}


def get_target(what: str) -> Target:
    """Return what can be built under a name. UnknownNameError where it is none."""
    if what not in TARGETS:
        raise unknown("set to build", what, TARGETS)
    return TARGETS[what]


def build(
    what: str,
    out: Path | str,
    *,
    benchmark: str | Path | None = None,
    roots: Path | str | Roots = MappingProxyType({}),
    groups: Collection[str] = (),
    splits: Collection[str] = (),
    per_class: int | None = None,
    local: bool = False,
    allow_missing: bool = False,
    spec: str | ResizeSpec | None = None,
    file_format: str = "png",
    backend: str = "auto",
    workers: int = 1,
    scheduler: str | None = None,
    shard_size: int = SHARD_SIZE,
    identify: str = "stat",
    progress: Progress | None = None,
    notify: Callable[[str], None] = warnings.warn,
) -> Built:
    """Build a set of resized images, or continue one.

    Parameters
    ----------
    what : a key of `TARGETS`: ``folder``, ``lsun``, ``tiny-imagenet`` or ``from-manifest``.
    out : folder to build in.
    benchmark, groups, splits : from-manifest: which manifest, and what of it.
    roots : the folder of images, or of the one source of a set; or folders by name of source.
    per_class : lsun: images of each scene.
    local : draw from what a root holds, where its counts are unknown or not the publisher's.
    allow_missing : leave out images that a root lacks instead of raising.
    spec : a resize spec or its name; the view of the groups unless given, else ``fix``.
    file_format : ``png`` or ``parquet``.
    backend : one of `BACKENDS`; equal bytes from each.
    workers, scheduler : processes on this machine, or the address of a Dask scheduler.
    shard_size : images of a shard, the unit of work.
    identify : how an image that changed since an earlier call is noticed: ``stat`` compares size and time of
        its file, ``digest`` reads it.
    notify : called with each note or warning, before the work begins.

    Raises
    ------
    UnknownNameError : no such target, benchmark, group, split, spec, format or backend.
    MissingImageError : a root lacks images, without ``allow_missing``.
    OutputError : the folder cannot be written, is in use, or holds something else.
    SplitsError : conflicting options; a failing worker, cluster or library.
    """
    target = get_target(what)
    options: dict[str, Any] = {
        "benchmark": benchmark,
        "groups": groups,
        "splits": splits,
        "per_class": per_class,
        "local": local,
    }
    for name in [name for name, value in options.items() if value and name not in target.takes]:
        takers = ", ".join(other for other in TARGETS if name in TARGETS[other].takes)
        raise SplitsError(f"{what} takes no {_FLAGS[name]}", hint=f"that is for {takers}")
    if "benchmark" in target.takes and benchmark is None:
        hint = "as in: fix-resize build from-manifest unknown-cifar --group tin158"
        raise SplitsError("no benchmark given", hint=hint)
    if backend not in BACKENDS:
        raise unknown("backend", backend, BACKENDS, where="--backend")
    if identify not in get_args(Identify):
        raise unknown("way to identify images", identify, get_args(Identify), where="--identify")
    if scheduler is not None and workers > 1:
        raise SplitsError("give --workers or --scheduler, not both")
    if backend == "auto" and (why := why_not("numba")):
        notify(f"note: {why}; Pillow resizes instead, to the same pixels")
        backend = "pillow"
    get_format(file_format)
    resize = get_spec(spec) if isinstance(spec, str) else spec
    if scheduler is not None and (text := check_address(scheduler)):
        notify(text)
    chosen = {name: options[name] for name in target.takes}
    worklist = target.select(roots=_by_source(roots, target), allow_missing=allow_missing, **chosen)
    settings = PipelineSettings(
        spec=resize or get_spec(_view(worklist.views)),
        file_format=file_format,
        backend=backend,
        shard_size=shard_size,
        identify=cast(Identify, identify),
        allow_missing=allow_missing,
        workers=workers,
        scheduler=scheduler,
        progress=progress or Silent(),
    )
    if settings.spec.study_only:
        notify(f"note: spec {settings.spec.name} is broken on purpose, for study ({settings.spec.about})")
    return build_worklist(worklist, Path(out), settings)


def _by_source(roots: Path | str | Roots, target: Target) -> dict[str, Path]:
    if isinstance(roots, Path | str):
        if target.source is None:
            raise SplitsError("this folder's source is not named", where=str(roots), hint="name it: NAME=DIR")
        roots = {target.source: roots}
    return {name: expand_home(folder, where="--root") for name, folder in dict(roots).items()}


def _view(views: frozenset[str]) -> str:
    """Return the name of the spec that is the view of the chosen groups."""
    resized = sorted(views - {"raw"})
    if len(resized) > 1:
        raise SplitsError(f"the groups have different views: {', '.join(resized)}", hint="give --spec")
    return resized[0] if resized else "fix"
