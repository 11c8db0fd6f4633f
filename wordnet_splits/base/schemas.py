"""Schemas of our recipes and JSON files: types of fields, validation, and files sealed by a checksum.

A checksum is not a signature: an attacker can recompute it. So the reader of each kind of sealed file
recomputes the values that it can, or compares them with other files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from wordnet_splits.base import files
from wordnet_splits.base.digests import digest_json
from wordnet_splits.base.errors import DataError
from wordnet_splits.base.names import printable
from wordnet_splits.base.text_formats import read_json
from wordnet_splits.base.untrusted import ErrorType

NAME_PATTERN: Final = r"^[a-z0-9][a-z0-9-]{0,63}$"

Name = Annotated[str, Field(pattern=NAME_PATTERN)]
BenchmarkName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,63}(@seed=-?[0-9]+)?(@local)?$")]
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0, strict=True)]
Version = Annotated[int, Field(ge=1, le=2**31 - 1, strict=True)]
Role = Literal["id", "near", "far", "external", "csid"]
Split = Literal["train", "val", "test"]
Counted = Literal["classes", "train", "val", "test"]
COUNTED: Final[tuple[Counted, ...]] = get_args(Counted)

CHECKSUM: Final = "checksum"
"""Key of the checksum of a sealed file."""

Model = TypeVar("Model", bound=BaseModel)


class StrictModel(BaseModel):
    """Base of the schemas of files that we write and read back: frozen, no unknown keys, no conversions."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def validate(
    model: type[Model],
    value: object,
    *,
    where: str,
    error: ErrorType = DataError,
    hint: str | None = None,
) -> Model:
    """Return ``value``, read from a file, as an object of the file's schema ``model``.

    Raises
    ------
    error : a key is absent, unknown or of another type; the first such key is named.
    """
    try:
        return model.model_validate(value)
    except ValidationError as cause:
        first = cause.errors(include_url=False, include_input=False)[0]
        key = ".".join(map(str, first["loc"])) or "the top"
        message = first["msg"].removeprefix("Value error, ")
        raise error(f"is malformed at {printable(key)}: {message}", where=where, hint=hint) from None
    except RecursionError:
        raise error("is nested too deeply", where=where, hint=hint) from None


def write_sealed(
    path: Path, value: Mapping[str, Any], *, hint: str = files.HINT, aside: Path | None = None
) -> None:
    """Write an object and its checksum in one step. Parameters and errors as `files.replacing`."""
    plain = json.loads(json.dumps(value))  # as a reader gets it: keys are texts, tuples lists
    text = files.json_text({**plain, CHECKSUM: digest_json(plain)})
    files.write_bytes(path, text.encode(), hint=hint, aside=aside)


def read_sealed(
    path: Path, model: type[Model], *, error: ErrorType = DataError, hint: str | None = None
) -> Model:
    """Return the object of a file of `write_sealed` as ``model``, the schema of the file.

    Raises
    ------
    error : the file is absent, malformed, not of the schema, or was altered since it was written.
    """
    data = read_json(path, error=error)
    if not isinstance(data, dict):
        raise error("is malformed: not an object", where=str(path), hint=hint)
    checksum = data.pop(CHECKSUM, None)
    value = validate(model, data, where=str(path), error=error, hint=hint)
    if checksum != digest_json(data):
        raise error("was altered: its checksum differs", where=str(path), hint=hint)
    return value
