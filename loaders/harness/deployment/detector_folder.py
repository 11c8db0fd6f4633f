"""The folder of an exported detector: ``detector.json``, sealed, and ``arrays.safetensors``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import Field

from wordnet_splits.base import files
from wordnet_splits.base.errors import DataError
from wordnet_splits.base.lazy import need
from wordnet_splits.base.schemas import Count, Sha256, StrictModel, read_sealed, write_sealed
from wordnet_splits.base.untrusted import GiB, check_file, sha256_of

from ..arrays import Array
from ..model.class_map import ClassMap, Mode
from ..plugins import user_errors

DESCRIPTION: Final = "detector.json"
ARRAYS: Final = "arrays.safetensors"
CALIBRATION: Final = "calibration"
"""Array of the calibration scores, ascending."""
AGAIN: Final = "export the detector again"
LARGEST_ARRAYS: Final = 256 * GiB


class Network(StrictModel):
    """The network whose outputs a detector scores.

    Attributes
    ----------
    key : fingerprint of its weights and architecture. spec : as `load_model` takes it, "" for an object.
    weights : file or name of its weights, "" for those of ``spec``.
    """

    name: str
    key: str
    spec: str
    weights: str


class Columns(StrictModel):
    """The output columns that are classes: see `model.class_map.ClassMap`."""

    columns: list[Count]
    width: Count
    restrict: Mode
    background: int | None
    mapping: str

    @classmethod
    def of(cls, class_map: ClassMap) -> Columns:
        """Describe a class map."""
        return cls(
            columns=list(class_map.columns),
            width=class_map.width,
            restrict=class_map.mode,
            background=class_map.background,
            mapping=class_map.origin,
        )

    @property
    def class_map(self) -> ClassMap:
        """The class map itself."""
        return ClassMap(tuple(self.columns), self.width, self.restrict, self.background, self.mapping)


class Preprocessing(StrictModel):
    """The transform of images: its key, its description in words, and its specification."""

    key: Sha256
    words: str
    spec: dict[str, Any]


class Benchmark(StrictModel):
    """The benchmark that a detector was fitted and calibrated on."""

    name: str
    version: Count
    images_fingerprint: str | None


class Calibration(StrictModel):
    """The threshold and its guarantee; see `wordnet_splits.metrics.conformal`.

    Attributes
    ----------
    requested : greatest acceptable rate of false alarms. false_alarms : the promised rate, at most that.
    images, rank : number of calibration images, and rank of the threshold among them.
    threshold : images of lower confidence are flagged. groups : the sets of the images.
    """

    requested: float = Field(gt=0, lt=1)
    false_alarms: float
    images: Count
    rank: Count
    threshold: float
    groups: list[str]


class Description(StrictModel):
    """``detector.json``.

    Attributes
    ----------
    detector : label in the results. name, params : registered name or ``MODULE:NAME``, and parameters.
    view : ``raw``, or the resize spec of images before the transform.
    state : tree of the fitted state (`states.pack_state`). notes : conditions that weaken the guarantee.
    arrays : SHA-256 of ``arrays.safetensors``. software : versions of the packages of the export.
    """

    schema_: Literal[1] = Field(alias="schema")
    detector: str
    name: str
    params: dict[str, int | float | str | bool]
    chosen_on: str
    network: Network
    columns: Columns
    view: str
    transform: Preprocessing
    benchmark: Benchmark
    calibration: Calibration
    notes: list[str]
    software: dict[str, str]
    state: dict[str, Any]
    arrays: str = ""


def write_folder(
    folder: Path, description: Description, arrays: Mapping[str, Array], *, overwrite: bool
) -> tuple[Path, ...]:
    """Write a detector's folder in one step, and return its files.

    Raises
    ------
    OutputError : the folder cannot be written, holds a detector (not with ``overwrite``), or other files.
    """
    save_file = _safetensors(str(folder)).save_file
    with files.locked(folder, busy="another export is writing here"):
        files.restore(folder)
        refuse_folder(folder, overwrite=overwrite)
        with files.replacing_folder(folder) as part:
            save_file(dict(arrays), str(part / ARRAYS))
            (part / ARRAYS).chmod(files.permissions())  # the library's files are for the user alone
            digest = sha256_of(part / ARRAYS, largest=LARGEST_ARRAYS)
            content = description.model_copy(update={"arrays": digest})
            write_sealed(part / DESCRIPTION, content.model_dump(mode="json", by_alias=True))
    return folder / DESCRIPTION, folder / ARRAYS


def refuse_folder(folder: Path, *, overwrite: bool) -> None:
    """Raise OutputError for a folder that holds a detector (not with ``overwrite``), or other files."""
    files.refuse_folder(folder, (DESCRIPTION, ARRAYS), holding="a detector", overwrite=overwrite)


def read_folder(folder: Path) -> tuple[Description, dict[str, Array]]:
    """Return the description and the arrays of a detector's folder.

    Raises
    ------
    DataError : a file is absent, malformed or altered.
    """
    if not (folder / DESCRIPTION).is_file():
        hint = "give the folder that `export-detector` wrote"
        raise DataError(f"no {DESCRIPTION} here", where=str(folder), hint=hint)
    description = read_sealed(folder / DESCRIPTION, Description, hint=AGAIN)
    path = folder / ARRAYS
    check_file(path, largest=LARGEST_ARRAYS)
    if sha256_of(path, largest=LARGEST_ARRAYS) != description.arrays:
        raise DataError("was altered: its checksum differs", where=str(path), hint=AGAIN)
    load_file = _safetensors(str(folder)).load_file
    with user_errors("is not a safetensors file", where=str(path), hint=AGAIN):
        arrays = dict(load_file(str(path)))
    calibration = arrays.get(CALIBRATION)
    if calibration is None or calibration.shape != (description.calibration.images,):
        raise DataError("holds no calibration scores", where=str(path), hint=AGAIN)
    return description, arrays


def _safetensors(where: str) -> Any:
    return need("safetensors.numpy", "torch", where=where)
