"""The facts of one evaluated network in ``about.json``: its weights, device, transforms and columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from wordnet_splits.base.schemas import Count


class AboutPart(BaseModel):
    """Base of the parts of ``about.json``."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ColumnsUsed(AboutPart):
    """The columns of a model's output that are used: see `model.class_map.ClassMap.record`.

    ``order`` identifies the column of each label; older files lack it.
    """

    restrict: Literal["columns", "full"]
    columns: Count
    of: Count
    background: Count | None
    mapping: Annotated[str, Field(pattern=r"^(identity|classes|given|source:[a-z0-9][a-z0-9-]{0,63})$")]
    order: Annotated[str, Field(pattern=r"^[0-9a-f]{8}$")] | None = None

    def is_of(self, record: Mapping[str, Any]) -> bool:
        """Return whether these are the columns of a class map's record; older files lack the order."""
        ignored = "mapping" if self.order else "order"  # equal columns may be given in several ways
        return all(value == record[name] for name, value in self.model_dump().items() if name != ignored)


class RunFacts(AboutPart):
    """One network that was evaluated.

    Attributes
    ----------
    run : its number in the tables. name : of the network, from its specification.
    model : the model that it is a run of; tables average over the runs of one model.
    weights : where its weights come from. device : that it ran on.
    transforms : transform_key -> the transform in words.
    known_classes : K, the number of the benchmark's classes that it has.
    other_columns : whether its softmax has columns besides them (a background class; all of a larger model).
    named : whether somebody named the model; else ``model`` is the network's name, or a default. Older files
        lack it, and have it by whether the two names differ.
    """

    run: Count
    model: str
    name: str
    model_key: str
    weights: str
    device: str
    transforms: dict[str, str]
    class_map: ColumnsUsed | None
    known_classes: Count
    other_columns: bool
    named: bool

    @model_validator(mode="before")
    @classmethod
    def _of_older_files(cls, values: Any) -> Any:
        if not isinstance(values, dict) or "named" in values:
            return values
        return {**values, "named": values.get("model") != values.get("name")}

    @model_validator(mode="after")
    def _columns_fit(self) -> RunFacts:
        used = self.class_map
        if used is not None:
            softmax = used.columns + (used.background is not None)
            fit = self.known_classes <= used.columns and max(softmax, 1 + (used.background or 0)) <= used.of
            if not fit or self.other_columns != (softmax > self.known_classes):
                raise ValueError(
                    f"{self.known_classes} known classes do not fit {used.columns} columns of {used.of}"
                )
        return self
