"""``pytorch_ood.metrics`` on outlier scores and labels below 0 for OOD, computed by our metrics."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any

import numpy as np
import torch

from tools.peers.statements import OutOfScope, Outside, adapted
from wordnet_splits import metrics
from wordnet_splits.base.errors import SplitsError
from wordnet_splits.metrics import RankCounts
from wordnet_splits.metrics.counts import to_numpy

Curve = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def _as_peer(function: Callable[..., Any]) -> Callable[..., Any]:
    """Count the call, and raise a ValueError where our error is raised."""

    @wraps(function)
    def translated(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except SplitsError as error:
            raise ValueError(str(error)) from error

    return adapted(translated)


def _counts(scores: torch.Tensor, labels: torch.Tensor) -> RankCounts:
    if scores.shape != labels.shape:
        raise ValueError("scores and labels of different shapes")
    values, ood = to_numpy(scores).reshape(-1), to_numpy(labels).reshape(-1) < 0
    if values.dtype.kind != "f":
        values = values.astype(np.float64)
    return metrics.rank_counts(-values[~ood], -values[ood])


@_as_peer
def auroc(scores: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return torch.tensor(metrics.auroc(_counts(scores, labels)), dtype=torch.float64)


@_as_peer
def aupr(scores: torch.Tensor, labels: torch.Tensor, positive: str = "ood") -> torch.Tensor:
    area = {"ood": metrics.aupr_out, "id": metrics.aupr_in}
    if positive not in area:
        raise ValueError(positive)
    return torch.tensor(area[positive](_counts(scores, labels), trapezoid=True), dtype=torch.float64)


@_as_peer
def fpr_at_tpr(scores: torch.Tensor, labels: torch.Tensor, tpr: float = 0.95) -> torch.Tensor:
    value = metrics.fpr95_ood_positive(_counts(scores, labels), tpr=tpr)
    return torch.tensor(value, dtype=torch.float64)


@_as_peer
def roc_curve(scores: torch.Tensor, labels: torch.Tensor) -> Curve:
    pair = _counts(scores, labels).require("id", "ood").ood_positive
    fpr, tpr = pair.cum_ood / pair.n_ood, pair.cum_id / pair.n_id
    return torch.tensor(np.r_[0, fpr]), torch.tensor(np.r_[0, tpr]), torch.tensor(pair.thresholds)


@_as_peer
def pr_curve(scores: torch.Tensor, labels: torch.Tensor, positive: str = "ood") -> Curve:
    if positive not in ("ood", "id"):
        raise ValueError(positive)
    counts = _counts(scores, labels).require("id", "ood")
    pair, sign = (counts.ood_positive, 1) if positive == "ood" else (counts, -1)
    precision, recall = pair.cum_id / pair.cum_all, pair.cum_id / pair.n_id
    return (
        torch.tensor(np.r_[precision[::-1], 1]),
        torch.tensor(np.r_[recall[::-1], 0]),
        torch.tensor(sign * pair.thresholds[::-1]),
    )


@_as_peer
def accuracy(predictions: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    known = labels >= 0
    correct = to_numpy(predictions[known] == labels[known])
    return torch.tensor(metrics.accuracy(np.zeros(len(correct)), correct=correct), dtype=torch.float64)


class OODMetrics:
    """The collection of metrics that pytorch-ood computes over batches."""

    def __init__(self, fpr_at: float = 0.95, **options: Any) -> None:
        if options:
            raise OutOfScope(next(iter(options)))
        self.fpr_at = fpr_at
        self.reset()

    def reset(self) -> None:
        self.batches: list[tuple[torch.Tensor, torch.Tensor]] = []

    def update(self, scores: torch.Tensor, labels: torch.Tensor, predictions: object = None) -> OODMetrics:
        if predictions is not None:
            raise OutOfScope("accuracy in batches")
        if scores.shape != labels.shape:
            raise ValueError("scores and labels of different shapes")
        self.batches.append((scores.flatten(), labels.flatten()))
        return self

    @adapted
    def compute(self) -> Outcomes:
        scores, labels = (torch.cat(part) for part in zip(*self.batches, strict=True))
        return Outcomes(
            {
                "AUROC": float(auroc(scores, labels)),
                "AUPR-IN": float(aupr(scores, labels, positive="id")),
                "AUPR-OUT": float(aupr(scores, labels)),
                f"FPR{round(100 * self.fpr_at)}TPR": float(fpr_at_tpr(scores, labels, self.fpr_at)),
            }
        )


class Outcomes(dict[str, float]):
    """Values of the metrics that we have; another one is out of scope."""

    def __missing__(self, name: str) -> float:
        raise OutOfScope(name)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, dict) and not isinstance(other, Outcomes):
            other = {name: value for name, value in other.items() if name in self}
        return dict.__eq__(self, other)

    __hash__ = None


ADAPTED: dict[str, dict[str, Any]] = {
    "functional": {
        "auroc": auroc,
        "aupr": aupr,
        "fpr_at_tpr": fpr_at_tpr,
        "roc_curve": roc_curve,
        "pr_curve": pr_curve,
        "accuracy": accuracy,
        "autc": Outside("autc"),
        "_Counts": Outside("pytorch-ood's own counts"),
    },
    "": {
        "OODMetrics": OODMetrics,
        "AUTC": Outside("autc"),
        "aurra": Outside("aurra"),
        "calc_openness": Outside("openness"),
        "calibration_error": Outside("calibration of confidences"),
        "oscr_score": Outside("OSCR of one maximum a sample (ours takes all class scores)"),
    },
}


def install() -> None:
    """Offer ``pytorch_ood.metrics``, under the checkout's name for it too (``src.pytorch_ood``)."""
    for prefix in ("", "src."):
        package, module, functional = (
            ModuleType(f"{prefix}pytorch_ood{path}") for path in ("", ".metrics", ".metrics.functional")
        )
        vars(module).update(ADAPTED[""], functional=functional)
        vars(functional).update(ADAPTED["functional"])
        vars(package).update(metrics=module)
        for each in (package, module, functional):
            sys.modules[each.__name__] = each
    sys.modules["src"] = ModuleType("src")
    vars(sys.modules["src"]).update(pytorch_ood=sys.modules["src.pytorch_ood"])
