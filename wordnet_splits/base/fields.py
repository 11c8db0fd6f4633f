"""What fields of our recipes and JSON files may hold, and the strict base of the schemas of those files."""

from __future__ import annotations

from typing import Annotated, Final, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

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


class StrictModel(BaseModel):
    """Base of what we write and read back: frozen, no unknown field, no value of another type."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
