"""JSON files that hold a checksum of themselves, so that no field of them can be altered unnoticed.

The checksum is not a signature: anyone who means to deceive can recompute it. So the reader of each kind of
file recomputes what it can, or compares it with other files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import BaseModel

from wordnet_splits.base import files, untrusted
from wordnet_splits.base.digests import digest_json
from wordnet_splits.base.errors import DataError, SplitsError

CHECKSUM: Final = "checksum"

Validated = TypeVar("Validated", bound=BaseModel)


def write_sealed(
    path: Path, value: Mapping[str, Any], *, hint: str = files.HINT, aside: Path | None = None
) -> None:
    """Write an object with its checksum in one step. Parameters and errors as `files.replacing`."""
    plain = json.loads(json.dumps(value))  # as a reader gets it: keys are texts, tuples lists
    text = files.json_text({**plain, CHECKSUM: digest_json(plain)})
    files.write_bytes(path, text.encode(), hint=hint, aside=aside)


def read_sealed(
    path: Path, model: type[Validated], *, error: type[SplitsError] = DataError, hint: str | None = None
) -> Validated:
    """Return what `write_sealed` wrote, as ``model``, which is the schema of the file.

    Raises
    ------
    error : the file is absent, malformed, not of the schema, or altered since it was written.
    """
    data = untrusted.read_json(path, error=error)
    if not isinstance(data, dict):
        raise error("is malformed: not an object", where=str(path), hint=hint)
    found = data.pop(CHECKSUM, None)
    read = untrusted.validated(model, data, where=str(path), error=error, hint=hint)
    if found != digest_json(data):
        raise error("was altered: its checksum differs", where=str(path), hint=hint)
    return read
