"""Learning-rate schedules as factors of the recipe's rate, pure functions of the progress made."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field


class _Schedule(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Constant(_Schedule):
    """The same rate throughout."""

    kind: Literal["constant"]

    def factor(self, step: int, steps_per_epoch: int, epochs: int) -> float:
        """Return 1."""
        return 1.0


class Steps(_Schedule):
    """x factor from each milestone epoch on (counted from 0: ``120`` is after 120 epochs)."""

    kind: Literal["steps"]
    milestones: tuple[int, ...]
    by: float = Field(gt=0, lt=1, alias="factor")

    def factor(self, step: int, steps_per_epoch: int, epochs: int) -> float:
        """Return ``by`` to the number of milestones passed."""
        epoch = step // steps_per_epoch
        return float(self.by ** sum(epoch >= milestone for milestone in self.milestones))

    def scaled(self, old: int, new: int) -> Steps:
        """Return the milestones at the same fractions of ``new`` epochs as they have of ``old``."""
        milestones = tuple(round(m * new / old) for m in self.milestones)
        return Steps(kind="steps", milestones=milestones, factor=self.by)


class Cosine(_Schedule):
    """Half a cosine from 1 to ``end`` over all steps."""

    kind: Literal["cosine"]
    end: float = Field(default=0.0, ge=0, lt=1)

    def factor(self, step: int, steps_per_epoch: int, epochs: int) -> float:
        """Return the factor of a step, counted from 0."""
        return self.end + (1 - self.end) * _half_cosine(step / (steps_per_epoch * epochs))


class OneCycle(_Schedule):
    """Linear from near 0 to 1 over the first ``warmup`` of all steps, then half a cosine down to 0."""

    kind: Literal["one-cycle"]
    warmup: float = Field(default=0.25, gt=0, lt=1)

    def factor(self, step: int, steps_per_epoch: int, epochs: int) -> float:
        """Return the factor of a step, counted from 0."""
        total = steps_per_epoch * epochs
        rise = max(1, round(self.warmup * total))
        if step < rise:
            return (step + 1) / rise
        return _half_cosine((step - rise) / max(1, total - rise))


def _half_cosine(progress: float) -> float:
    return 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))


Schedule = Annotated[Constant | Steps | Cosine | OneCycle, Field(discriminator="kind")]
