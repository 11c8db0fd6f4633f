"""The shape of ``manifest.json``: what comes from elsewhere is checked before it is used, paths above all."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from wordnet_splits.errors import ManifestError

SCHEMA = 1
_GROUP = r"^[a-z0-9][a-z0-9-]{0,63}$"
_BENCHMARK = r"^[a-z0-9][a-z0-9-]{0,63}(@seed=-?[0-9]+)?(@local)?$"
_SHA256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class _Model(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow")


class _Part(_Model):
    """One image table. Its names become a path, so they hold no separator and no dot."""

    split: Literal["train", "val", "test"]
    group: Annotated[str, Field(pattern=_GROUP)]
    rows: int
    images: _SHA256
    pixels: _SHA256 | None


class _Fingerprints(_Model):
    classes: _SHA256
    explanation: _SHA256
    images: list[_Part]
    images_in_all: _SHA256 | None
    pixels_in_all: _SHA256 | None


class _Group(_Model):
    group: str
    role: str
    source: str
    split: Literal["classes", "train", "val", "test"]
    published: int | None
    expected: int | None
    actual: int | None
    status: str


class _Leak(_Model):
    kind: str
    a: str
    b: str
    count: int
    severity: str
    reason: str


class _Data(_Model):
    name: Annotated[str, Field(pattern=_BENCHMARK)]
    version: int
    recipe: dict[str, Any]
    groups: list[_Group]
    fingerprint: _SHA256 | None
    fingerprints: _Fingerprints
    leaks: list[_Leak]
    complete: bool
    missing: list[dict[str, Any]]
    provenance: dict[str, Any]


def check_data(data: object, where: str) -> dict[str, Any]:
    """Return the content of a ``manifest.json`` if it has the shape that this version reads.

    Raises
    ------
    ManifestError : another schema, or a key that is missing or holds something else.
    """
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise ManifestError(
            f"manifest.json has not schema {SCHEMA}", where=where, hint="build it with this version"
        )
    try:
        _Data.model_validate(data)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        key = ".".join(map(str, problem["loc"]))
        raise ManifestError(
            f"manifest.json is malformed at {key}: {problem['msg']}", where=where, hint="build it again"
        ) from None
    return data
