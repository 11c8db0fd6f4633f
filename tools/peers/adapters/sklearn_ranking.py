"""scikit-learn's binary ranking metrics, computed from our counts."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np
import sklearn.metrics
import sklearn.metrics._ranking
from sklearn.utils.multiclass import type_of_target

from tools.peers.statements import OutOfScope, adapted
from wordnet_splits.base.errors import SplitsError
from wordnet_splits.metrics import RankCounts, aupr_in, auroc, rank_counts

P = ParamSpec("P")
R = TypeVar("R")
Curve = tuple[np.ndarray, np.ndarray, np.ndarray]


def _as_peer(function: Callable[P, R]) -> Callable[P, R]:
    """Count the call, and raise a ValueError where our error is raised."""

    @wraps(function)
    def translated(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except SplitsError as error:
            raise ValueError(str(error)) from error

    return adapted(translated)


def _counts(y_true: Any, y_score: Any, pos_label: Any, options: dict[str, Any]) -> RankCounts:
    """Return the counts of the positive class as ID and the rest as OOD."""
    for name, value in options.items():
        if value is not None and (name, value) not in (("average", "macro"), ("multi_class", "raise")):
            raise OutOfScope(name)
    if type_of_target(y_true) != "binary":
        raise OutOfScope("targets that are not binary")
    labels, scores = np.asarray(y_true), np.asarray(y_score)
    if labels.shape != scores.shape:
        raise OutOfScope("labels and scores of different shapes (our functions take two arrays of scores)")
    if pos_label is None and labels.dtype.kind not in "biuf":
        raise OutOfScope("labels that are strings")
    positive = labels == (1 if pos_label is None else pos_label)
    return rank_counts(scores[positive], scores[~positive])


@_as_peer
def roc_auc_score(y_true: Any, y_score: Any, **options: Any) -> float:
    return auroc(_counts(y_true, y_score, None, options))


@_as_peer
def average_precision_score(y_true: Any, y_score: Any, *, pos_label: Any = 1, **options: Any) -> float:
    return aupr_in(_counts(y_true, y_score, pos_label, options))


@_as_peer
def roc_curve(
    y_true: Any, y_score: Any, *, pos_label: Any = None, drop_intermediate: bool = True, **options: Any
) -> Curve:
    counts = _counts(y_true, y_score, pos_label, options).require("id", "ood")
    fpr, tpr = counts.cum_ood / counts.n_ood, counts.cum_id / counts.n_id
    return np.r_[0, fpr], np.r_[0, tpr], np.r_[np.inf, counts.thresholds]


@_as_peer
def precision_recall_curve(
    y_true: Any, y_score: Any, *, pos_label: Any = None, drop_intermediate: bool = False, **options: Any
) -> Curve:
    if drop_intermediate:
        raise OutOfScope("drop_intermediate")
    counts = _counts(y_true, y_score, pos_label, options).require("id")
    precision, recall = counts.cum_id / counts.cum_all, counts.cum_id / counts.n_id
    return np.r_[precision[::-1], 1], np.r_[recall[::-1], 0], counts.thresholds[::-1]


def install() -> None:
    """Put our functions in the place of scikit-learn's."""
    for function in (roc_auc_score, average_precision_score, roc_curve, precision_recall_curve):
        for module in (sklearn.metrics, sklearn.metrics._ranking):
            setattr(module, function.__name__, function)
