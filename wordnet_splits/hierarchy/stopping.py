"""Stopping rules: select a classifier's answer, a node, from the probabilities of its classes.

Ties of merit go to the most probable node, and among nodes that cover the same classes to the deepest.

References
----------
Deng, Krause, Berg and Fei-Fei. Hedging Your Bets: Optimizing Accuracy-Specificity Trade-offs in Large Scale
Visual Recognition. CVPR 2012.
Vovk, Gammerman and Shafer. Algorithmic Learning in a Random World. Springer, 2005 (split conformal sets).
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from wordnet_splits.base.errors import DataError, unknown
from wordnet_splits.hierarchy.nodes import ClassHierarchy, Flags, Floats, Ints
from wordnet_splits.metrics.conformal import ConformalGuarantee

ROUNDING = 1e-5
"""How much a probability of 1 may exceed it, in single precision."""
ROWS = 4096
"""Images whose posteriors are in memory at a time."""
_SPELLING = re.compile(r"(\w+)(?:\[(\w+)=([-+.\w]+)\])?")


class Rule(ABC):
    """A stopping rule with a parameter; ``curve`` has its values along a specificity-accuracy curve."""

    name: ClassVar[str]
    parameter: ClassVar[str]
    curve: ClassVar[tuple[float, ...]]

    @classmethod
    def of(cls, value: float) -> Self:
        """Return the rule with a value of its parameter."""
        return cls(**{cls.parameter: value})

    @property
    def label(self) -> str:
        """The rule as it is written: ``threshold[posterior=0.9]``."""
        return f"{self.name}[{self.parameter}={getattr(self, self.parameter):g}]"

    @abstractmethod
    def merit(
        self, hierarchy: ClassHierarchy, probabilities: Floats, posteriors: Floats, calibration: Floats
    ) -> Floats:
        """Return the merit (n, nodes) of each answer, -1 where it is not allowed."""

    def answers(
        self,
        hierarchy: ClassHierarchy,
        probabilities: npt.ArrayLike,
        *,
        calibration: npt.ArrayLike = (),
        unknown: npt.ArrayLike = False,
    ) -> Ints:
        """Return the node (n,) that answers for each image.

        Parameters
        ----------
        probabilities : (n, K), rows that sum to 1.
        calibration : (m,) probabilities of the true class of other ID images, for `Conformal`.
        unknown : (n,) images of none of the classes, which inner nodes answer for.
        """
        values = hierarchy.checked(probabilities)
        flags = np.asarray(unknown, dtype=bool)
        if flags.shape not in ((), (len(values),)):
            raise DataError(f"unknown must have shape ({len(values)},), got {flags.shape}", where=self.label)
        outside: Flags = np.broadcast_to(flags, len(values))
        known_probabilities = np.sort(np.asarray(calibration, dtype=np.float64))
        if not ((known_probabilities >= 0) & (known_probabilities <= 1 + ROUNDING)).all():
            raise DataError("calibration probabilities must be between 0 and 1", where=self.label)
        answers = np.empty(len(values), dtype=np.int64)
        for start in range(0, len(values), ROWS):
            rows = slice(start, start + ROWS)
            posteriors = hierarchy.posteriors(values[rows])
            merit = self.merit(hierarchy, values[rows], posteriors, known_probabilities)
            merit[np.ix_(outside[rows], ~hierarchy.inner)] = -np.inf
            best = merit == merit.max(axis=1, keepdims=True)
            answers[rows] = np.where(best, posteriors, -1).argmax(axis=1)
        return answers


@dataclass(frozen=True)
class Threshold(Rule):
    """The most specific node whose posterior is at least ``posterior``, in [0, 1]."""

    posterior: float = 0.9

    name, parameter = "threshold", "posterior"
    curve = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)

    def __post_init__(self) -> None:
        _check_range(self.label, self.posterior, 0, 1)

    def merit(
        self, hierarchy: ClassHierarchy, probabilities: Floats, posteriors: Floats, calibration: Floats
    ) -> Floats:
        """Return the information of the nodes that reach the threshold, which the root always does."""
        return np.where(posteriors >= self.posterior, hierarchy.information, -1)


@dataclass(frozen=True)
class Information(Rule):
    """The node of greatest expected information: posterior x (bits + ``weight``).

    A ``weight`` of 0 maximises the information gained; a greater one trades it for accuracy (Deng's lambda).
    """

    weight: float = 0.0

    name, parameter = "information", "weight"
    curve = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)

    def __post_init__(self) -> None:
        _check_range(self.label, self.weight, 0, float("inf"))

    def merit(
        self, hierarchy: ClassHierarchy, probabilities: Floats, posteriors: Floats, calibration: Floats
    ) -> Floats:
        """Return the expected information of each node."""
        return posteriors * (hierarchy.information + self.weight)


@dataclass(frozen=True)
class Conformal(Rule):
    """The least common subsumer of a conformal set, which misses the class of an ID image at a bounded rate.

    The set has the classes whose probability is at least the k-th smallest of the calibration, with
    k = floor(error (m + 1)), and the predicted class in any case. ``error`` is the greatest acceptable
    probability that the answer is not above the true class of an ID image.
    """

    error: float = 0.1

    name, parameter = "conformal", "error"
    curve = (0.5, 0.4, 0.3, 0.2, 0.15, 0.1, 0.05, 0.02, 0.01)

    def __post_init__(self) -> None:
        _check_range(self.label, self.error, 0, 1)

    def merit(
        self, hierarchy: ClassHierarchy, probabilities: Floats, posteriors: Floats, calibration: Floats
    ) -> Floats:
        """Return the information of the nodes that cover the whole set; its LCS has the greatest."""
        rank = ConformalGuarantee.for_rate(self.error, len(calibration), where=self.label).rank
        sets = probabilities >= calibration[rank - 1]
        sets[np.arange(len(sets)), probabilities.argmax(axis=1)] = True
        outside = sets.astype(np.float64) @ (~hierarchy.covers.T).astype(np.float64)
        return np.where(outside == 0, hierarchy.information, -1)


RULES: dict[str, type[Rule]] = {rule.name: rule for rule in (Threshold, Information, Conformal)}


def parse_rule(text: str) -> Rule:
    """Return the rule of a text such as ``threshold`` or ``threshold[posterior=0.8]``."""
    match = _SPELLING.fullmatch(text.strip())
    if match is None:
        raise DataError(f"cannot read the stopping rule {text!r}", hint="as in threshold[posterior=0.9]")
    name, parameter, value = match.groups()
    if name not in RULES:
        raise unknown("stopping rule", name, RULES)
    rule = RULES[name]
    if parameter is None:
        return rule()
    if parameter != rule.parameter:
        raise unknown("parameter", parameter, [rule.parameter], where=name)
    try:
        number = float(value)
    except ValueError:
        raise DataError(f"{parameter} must be a number, got {value!r}", where=text) from None
    return rule.of(number)


def _check_range(label: str, value: float, least: float, greatest: float) -> None:
    if not (least <= value <= greatest and math.isfinite(value)):
        raise DataError(f"must be between {least:g} and {greatest:g}, got {value:g}", where=label)
