"""The schemas of the two kinds of files that describe stored activations: of a group, and of one shard."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from wordnet_splits.base.schemas import Count, Sha256, StrictModel

SCHEMA = 2

ArrayName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$")]


class ArrayRecord(StrictModel):
    """One array file: its checksum, type and shape."""

    sha256: Sha256
    dtype: Literal["float32", "float16"]
    shape: list[Count] = Field(min_length=1, max_length=8)


class CanaryRecord(StrictModel):
    """A few inputs of the group and their logits."""

    inputs: ArrayRecord
    logits: ArrayRecord


class GroupRecord(StrictModel):
    """``list.json``: the content of a group's folder.

    Attributes
    ----------
    model_key, transform_key, list_key : names of the folders.
    n : images. shard_rows : rows of every shard but the last.
    model, head : the model's name and that of its head. sources : of the images.
    transform : the specification, whose hash is ``transform_key``.
    """

    version: Literal[2] = Field(alias="schema")
    model_key: Sha256
    transform_key: Sha256
    list_key: Sha256
    n: int = Field(ge=1)
    shard_rows: int = Field(ge=1)
    model: str
    head: str | None
    sources: list[str]
    transform: dict[str, Any]
    features_dtype: Literal["float32", "float16"]
    canary: CanaryRecord


class ShardSettings(StrictModel):
    """Settings that the bytes of a shard depend on, besides model and images; `notes` has disturbances."""

    batch_size: int = Field(ge=1)
    device: str
    dtype: str
    libraries: dict[str, str]
    threads: Count
    notes: list[str] = Field(default_factory=list)


class ShardRecord(StrictModel):
    """``<unit>/<shard>.json``: one finished shard of one group and unit."""

    model_key: Sha256
    transform_key: Sha256
    list_key: Sha256
    unit: str
    shard: Count
    arrays: dict[ArrayName, ArrayRecord] = Field(min_length=1)
    settings: ShardSettings
