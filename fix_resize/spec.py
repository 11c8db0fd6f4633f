"""Resize specs: stages, filters, crop and colour rule, the id they hash to, and the shipped specs.

A spec states everything that determines the pixels, so specs with the same id give equal pixels. Versions of
libraries are recorded next to the id and do not enter it. The order of passes is part of the recipe because
Pillow 13 resizes some images (more than twice as tall as wide, or one axis shrinking while the other grows)
vertically first; a spec always means horizontally first.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise
from typing import Any, ClassVar, Final, Literal, NamedTuple, get_args

from PIL import features

from fix_resize.decode import MAX_PIXELS, UndecodableImageError
from wordnet_splits.base.errors import DataError, unknown

Size = tuple[int, int]
"""Height and width in pixels."""

FilterName = Literal["box", "bilinear", "hamming", "bicubic", "lanczos", "nearest"]
EngineName = Literal["pillow", "pillow-float", "pillow-nearest", "opencv", "tensor"]

COLOUR_RULE: Final = "rgb-1"
"""Name of the rules `fix_resize.decode.RULES`, part of every id; changed rules require a new name."""

INVERTED_RULE: Final = "rgb-1-inverted"
"""Name of these rules followed by 255 minus every value: dark on light becomes light on dark."""

SCHEMA: Final = 1
ID_LENGTH: Final = 12


@dataclass(frozen=True)
class Resize:
    """A stage that scales the image, preserving its proportions.

    Attributes
    ----------
    size : length of the shorter side afterwards in pixels; the longer is int(size * long / short), as in
        torchvision.
    filter : shape of the weights (`fix_resize.windows.FILTERS`), or ``nearest`` for a single input pixel.
    antialias : whether the filter widens with the scale; otherwise a reduction skips input pixels.
    engine : the arithmetic (`fix_resize.resize.ENGINES`).
    """

    size: int
    filter: FilterName = "bilinear"
    antialias: bool = True
    engine: EngineName = "pillow"
    op: ClassVar[str] = "resize"

    def __post_init__(self) -> None:
        if self.filter not in get_args(FilterName):
            raise unknown("resampling filter", self.filter, get_args(FilterName))
        if self.engine not in get_args(EngineName):
            raise unknown("resize engine", self.engine, get_args(EngineName))

    def target(self, height: int, width: int) -> Size:
        """Return (height, width) after the stage."""
        short, long = sorted((height, width))
        scaled = int(self.size * long / short)
        return (scaled, self.size) if width <= height else (self.size, scaled)


@dataclass(frozen=True)
class CenterCrop:
    """A stage that keeps the central square of ``size`` pixels."""

    size: int
    op: ClassVar[str] = "center-crop"

    def corner(self, height: int, width: int) -> Size:
        """Return (top, left) of the square: round((side - size) / 2), halves to even, as in torchvision."""
        return round((height - self.size) / 2), round((width - self.size) / 2)


Stage = Resize | CenterCrop
_OPERATIONS: Final[dict[str, type[Resize] | type[CenterCrop]]] = {s.op: s for s in (Resize, CenterCrop)}


class Step(NamedTuple):
    """A resize of an image of known size, and the crop that follows it.

    Attributes
    ----------
    stage : the resize.
    in_size, out_size : (height, width) before and after it.
    corner : (top, left) of the crop in ``out_size``.
    crop_size : (height, width) of the crop.
    """

    stage: Resize
    in_size: Size
    out_size: Size
    corner: Size
    crop_size: Size


@dataclass(frozen=True)
class ResizeSpec:
    """A frozen description of a resize.

    Attributes
    ----------
    name : name in views, command lines and metadata; it does not enter the id.
    stages : resizes and crops, in order; a crop follows a resize, and the output is a square.
    about : a sentence for tables and help.
    study_only : whether the spec is broken, and exists for comparison only.
    colour : rule by which a decoded file becomes 8-bit RGB (`COLOUR_RULE` or
        ``INVERTED_RULE``).
    passes : the axis that is resized first; pixels are rounded to uint8 between the passes.
    file_format : how the pixels are stored; as it is lossless, it does not enter the id.
    """

    name: str
    stages: tuple[Stage, ...]
    about: str = ""
    study_only: bool = False
    colour: str = COLOUR_RULE
    passes: Literal["horizontal-first"] = "horizontal-first"
    file_format: Literal["png"] = "png"

    def __post_init__(self) -> None:
        problem = _problem_of(self.stages)
        if problem is not None:
            raise DataError(problem, where=f"spec {self.name!r}")

    @property
    def side(self) -> int:
        """Height and width of every output, in pixels."""
        return self.stages[-1].size

    @property
    def id(self) -> str:
        """The first 12 hex digits of SHA-256 over `recipe` as canonical JSON."""
        text = json.dumps(self.recipe(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:ID_LENGTH]

    def recipe(self) -> dict[str, object]:
        """Return everything that determines the pixels, and nothing else."""
        return {
            "schema": SCHEMA,
            "stages": [{"op": stage.op, **vars(stage)} for stage in self.stages],
            "colour": self.colour,
            "passes": self.passes,
        }

    def describe(self) -> dict[str, object]:
        """Return the description for metadata: recipe, id, name, output, and versions of libraries."""
        return {
            "name": self.name,
            "id": self.id,
            "about": self.about,
            "study_only": self.study_only,
            **self.recipe(),
            "output": {"height": self.side, "width": self.side, "mode": "RGB", "format": self.file_format},
            "libraries": libraries(self),
        }

    @classmethod
    def from_description(cls, description: Mapping[str, Any]) -> ResizeSpec:
        """Return the spec of a description (see `describe`).

        Raises
        ------
        DataError : a field is missing or unknown, or the spec does not hash to the id of the description.
        """
        where = f"resize spec {description.get('name')!r}"
        if description.get("schema") != SCHEMA:
            raise DataError(f"schema {description.get('schema')!r} is not {SCHEMA}", where=where)
        try:
            spec = cls(
                name=str(description["name"]),
                stages=tuple(_read_stage(stage) for stage in description["stages"]),
                about=str(description["about"]),
                study_only=bool(description["study_only"]),
                colour=str(description["colour"]),
                passes=description["passes"],
            )
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"cannot be read ({error})", where=where) from error
        if spec.id != description.get("id"):
            raise DataError(f"hashes to {spec.id}, not to {description.get('id')}", where=where)
        if description.get("output") != spec.describe()["output"]:
            raise DataError("states another output than its stages make", where=where)
        return spec


def _problem_of(stages: Sequence[Stage]) -> str | None:
    if not stages or not isinstance(stages[0], Resize):
        return "a resize spec must begin with a resize"
    if any(stage.size < 1 for stage in stages):
        return "a stage has a size below one pixel"
    for before, stage in pairwise(stages):
        if isinstance(stage, CenterCrop) and not (isinstance(before, Resize) and before.size >= stage.size):
            return "a crop must follow a resize to at least its size"
    if not any(isinstance(stage, CenterCrop) for stage in stages):
        return "the output has no fixed size: add a center crop"
    return None


def _read_stage(stage: Mapping[str, Any]) -> Stage:
    fields = dict(stage)
    return _OPERATIONS[str(fields.pop("op"))](**fields)


@lru_cache(maxsize=4096)
def plan(spec: ResizeSpec, height: int, width: int) -> tuple[Step, ...]:
    """Return the steps that resize an image of (height, width) as a spec describes."""
    steps: list[Step] = []
    size = (height, width)
    for stage in spec.stages:
        if isinstance(stage, Resize):
            target = stage.target(*size)
            if target[0] * target[1] > MAX_PIXELS:
                raise UndecodableImageError("aspect", detail=f"{width} x {height} pixels")
            steps.append(Step(stage, size, target, (0, 0), target))
        else:
            crop_size = (stage.size, stage.size)
            steps[-1] = steps[-1]._replace(corner=stage.corner(*size), crop_size=crop_size)
        size = steps[-1].crop_size
    return tuple(steps)


_PACKAGES: Final[dict[str, tuple[str, ...]]] = {"opencv": ("opencv-python", "opencv-python-headless")}
"""Packages that an engine needs in addition to Pillow."""


@lru_cache(maxsize=8)
def libraries(spec: ResizeSpec) -> dict[str, str]:
    """Return the versions of libraries that decode and resize, for the record; they do not enter the id."""
    engines = {stage.engine for stage in spec.stages if isinstance(stage, Resize)}
    packages = ["pillow", *(package for engine in sorted(engines) for package in _PACKAGES.get(engine, ()))]
    decoders = {name: features.version(name) for name in ("libjpeg_turbo", "webp", "zlib", "libtiff")}
    versions = {package: _installed_version(package) for package in packages} | decoders
    return {name: str(number) for name, number in versions.items() if number}


def _installed_version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


_TO_256: Final = (Resize(256), CenterCrop(256))
_NAMED: Final = (
    ResizeSpec(
        "fix", (*_TO_256, Resize(32)), "256, centre crop, 32: antialiased bilinear, as CSI (Tack et al. 2020)"
    ),
    ResizeSpec("fix-64", (*_TO_256, Resize(64)), "as fix, to 64 pixels"),
    ResizeSpec("fix-direct", (Resize(32), CenterCrop(32)), "as fix, in one stage: rounded once, not twice"),
    ResizeSpec(
        "clean",
        (Resize(32, filter="bicubic", engine="pillow-float"), CenterCrop(32)),
        "one stage of float32 bicubic, rounded at the end, as clean-fid (Parmar et al. 2022)",
    ),
    ResizeSpec(
        "inverted-28",
        (Resize(28), CenterCrop(28)),
        "light on dark, then one stage to 28: drawings of Omniglot as MNIST's digits",
        colour=INVERTED_RULE,
    ),
    ResizeSpec(
        "nearest",
        (*_TO_256, Resize(32, filter="nearest", antialias=False, engine="pillow-nearest")),
        "broken: the last stage uses one pixel in 64",
        study_only=True,
    ),
    ResizeSpec(
        "opencv-bilinear",
        (*_TO_256, Resize(32, antialias=False, engine="opencv")),
        "broken: the last stage is OpenCV's INTER_LINEAR, which does not antialias",
        study_only=True,
    ),
    ResizeSpec(
        "tensor-bilinear-no-antialias",
        (*_TO_256, Resize(32, antialias=False, engine="tensor")),
        "broken: the last stage is torchvision's bilinear on tensors as it was before antialias",
        study_only=True,
    ),
)
SPECS: Final[dict[str, ResizeSpec]] = {spec.name: spec for spec in _NAMED}


def spec_names(*, broken: bool = True) -> tuple[str, ...]:
    """Return the names of the specs, with or without the broken specs."""
    return tuple(name for name, spec in SPECS.items() if broken or not spec.study_only)


def get_spec(name: str) -> ResizeSpec:
    """Return a spec by its name; UnknownNameError for an unknown name."""
    if name not in SPECS:
        raise unknown("resize spec", name, SPECS)
    return SPECS[name]
