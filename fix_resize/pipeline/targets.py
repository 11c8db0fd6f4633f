"""The sets that can be built, and the function behind ``fix-resize build``."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, cast, get_args

from fix_resize.pipeline.building import SHARD_SIZE, BuildResult, PipelineSettings
from fix_resize.pipeline.building import build as build_selection
from fix_resize.pipeline.cluster import check_address
from fix_resize.pipeline.selection import (
    Identify,
    select_folder,
    select_manifest,
)
from fix_resize.pipeline.writing import FORMATS
from fix_resize.resize import backend_problem
from fix_resize.spec import ResizeSpec, get_spec
from wordnet_splits.base.errors import SplitsError, unknown
from wordnet_splits.base.progress import Progress, Silent
from wordnet_splits.base.untrusted import expand_home
from wordnet_splits.datasets.sources.roots import Roots

BACKENDS: Final = ("auto", "pillow", "numba", "numpy")
FOLDER: Final = "folder"


@dataclass(frozen=True)
class BuildTarget:
    """A set that can be built.

    Attributes
    ----------
    options : names of the options of `build` that only some sets take.
    source : its only source, if it has one.
    published : benchmark and group that define a published set.
    """

    options: tuple[str, ...]
    source: str | None = None
    published: tuple[str, str] | None = None


TARGETS: Final = {
    "lsun": BuildTarget(("per_class", "local"), "lsun", ("unknown-cifar", "lsun")),
    "tiny-imagenet": BuildTarget(("local",), "imagenet1k", ("unknown-cifar", "tin158")),
    "from-manifest": BuildTarget(("benchmark", "groups", "splits", "local")),
    FOLDER: BuildTarget((), FOLDER),
}
"""The sets by their names; the first two are LSUN-FIX and TinyImageNet158-FIX of Kim et al."""

_FLAGS: Final = {
    "benchmark": "benchmark",
    "groups": "--group",
    "splits": "--split",
    "per_class": "--per-class",
    "local": "--local",
}


def get_target(name: str) -> BuildTarget:
    """Return a set to build by its name; UnknownNameError for an unknown name."""
    if name not in TARGETS:
        raise unknown("set to build", name, TARGETS)
    return TARGETS[name]


def build(
    target: str,
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
) -> BuildResult:
    """Build a set of resized images, or continue one.

    Parameters
    ----------
    target : the set to build: ``folder``, ``lsun``, ``tiny-imagenet`` or ``from-manifest``.
    out : folder to build in.
    benchmark, groups, splits : for from-manifest: the manifest, and the groups and splits to build.
    roots : the folder of images, or of the only source of a set; or folders by name of source.
    per_class : for lsun: number of images per scene.
    local : draw from a root even if its counts are unknown or differ from the publisher's.
    allow_missing : report images that a root lacks instead of raising MissingImageError.
    spec : a resize spec or its name; by default the view of the groups, else ``fix``.
    file_format : ``png`` or ``parquet``.
    backend : one of `BACKENDS`, which give equal bytes.
    workers, scheduler : number of processes on this machine, or the address of a Dask scheduler.
    shard_size : images per shard, the unit of work.
    identify : how to notice that an image changed since an earlier call: ``stat`` compares size and time of
        its file, ``digest`` reads it.
    notify : called with each note or warning, before the work begins.

    Raises
    ------
    UnknownNameError : no such set, benchmark, group, split, spec, format or backend.
    MissingImageError : a root lacks images, and ``allow_missing`` is false.
    OutputError : the folder cannot be written, is in use, or contains anything else.
    SplitsError : conflicting options, or a worker, cluster or library fails.
    """
    build_target = get_target(target)
    options: dict[str, Any] = {
        "benchmark": benchmark,
        "groups": groups,
        "splits": splits,
        "per_class": per_class,
        "local": local,
    }
    for name in [name for name, value in options.items() if value and name not in build_target.options]:
        targets = ", ".join(target for target in TARGETS if name in TARGETS[target].options)
        raise SplitsError(f"{target} takes no {_FLAGS[name]}", hint=f"that is for {targets}")
    if backend not in BACKENDS:
        raise unknown("backend", backend, BACKENDS, where="--backend")
    if identify not in get_args(Identify):
        raise unknown("way to identify images", identify, get_args(Identify), where="--identify")
    if scheduler is not None and workers > 1:
        raise SplitsError("give --workers or --scheduler, not both")
    if backend == "auto" and (problem := backend_problem("numba")):
        notify(f"note: {problem}; Pillow resizes instead, to the same pixels")
        backend = "pillow"
    if file_format not in FORMATS:
        raise unknown("format", file_format, FORMATS)
    resize = get_spec(spec) if isinstance(spec, str) else spec
    if scheduler is not None and (warning := check_address(scheduler)):
        notify(warning)
    folders = _roots_by_source(roots, build_target)
    if target == FOLDER:
        if FOLDER not in folders:
            raise SplitsError("no folder given", where="--root", hint="--root DIR")
        selection = select_folder(folders[FOLDER])
    else:
        if build_target.published:
            benchmark, *groups = build_target.published
        if benchmark is None:
            hint = "as in: fix-resize build from-manifest unknown-cifar --group tin158"
            raise SplitsError("no benchmark given", hint=hint)
        selection = select_manifest(
            benchmark,
            folders,
            groups=groups,
            splits=splits,
            local=local,
            per_class=per_class,
            allow_missing=allow_missing,
        )
        if build_target.published:
            selection.name = selection.name.replace(str(benchmark), target, 1)
    settings = PipelineSettings(
        spec=resize or get_spec(_view(selection.views)),
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
    return build_selection(selection, Path(out), settings)


def _roots_by_source(roots: Path | str | Roots, target: BuildTarget) -> dict[str, Path]:
    if isinstance(roots, Path | str):
        if target.source is None:
            raise SplitsError("the source of this folder is unknown", where=str(roots), hint="give NAME=DIR")
        roots = {target.source: roots}
    return {name: expand_home(folder, where="--root") for name, folder in dict(roots).items()}


def _view(views: frozenset[str]) -> str:
    """Return the name of the spec that is the view of the selected groups."""
    resized = sorted(views - {"raw"})
    if len(resized) > 1:
        raise SplitsError(f"the groups have different views: {', '.join(resized)}", hint="give --spec")
    return resized[0] if resized else "fix"
