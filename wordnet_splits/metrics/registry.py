"""The registry of metrics: one decorator; the names, directions and inputs that an evaluation iterates."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from wordnet_splits.errors import unknown
from wordnet_splits.metrics.counts import Array, RankCounts

Kernel = Callable[[RankCounts], Array]
PublicFunction = TypeVar("PublicFunction", bound=Callable[..., float])

ID_OOD = ("id", "ood")
ID_CORRECT = ("id", "correct")
ID_CORRECT_OOD = ("id", "correct", "ood")

METRICS: dict[str, Metric] = {}


@dataclass(frozen=True)
class Metric:
    """A registered metric; its value is always a fraction.

    Attributes
    ----------
    name : as in the ``metric`` column of the results.
    higher_is_better : the good direction.
    needs : what it consumes, a part of ("id", "correct", "ood").
    kernel : `RankCounts` -> values of its leading shape; NaN where a value does not exist.
    function : the public function of this metric, documented, for use alone.
    """

    name: str
    higher_is_better: bool
    needs: tuple[str, ...]
    kernel: Kernel
    function: Callable[..., float]

    @property
    def summary(self) -> str:
        """First line of the public function's documentation."""
        return (self.function.__doc__ or "").strip().partition("\n")[0]

    def computable(self, counts: RankCounts) -> bool:
        """Whether ``counts`` hold everything the metric needs."""
        held = {
            "id": bool(counts.n_id.all()),
            "ood": bool(counts.n_ood.all()),
            "correct": counts.cum_correct is not None,
        }
        return all(held[need] for need in self.needs)


def metric(
    name: str, kernel: Callable[..., Array], *, higher_is_better: bool, needs: tuple[str, ...], **options: Any
) -> Callable[[PublicFunction], PublicFunction]:
    """Register the decorated public function as metric ``name``, computed by ``kernel(counts, **options)``.

    A function may carry several decorators: named variants of one metric that differ in their options.
    """

    def compute(counts: RankCounts) -> Array:
        return kernel(counts, **options)

    def register(function: PublicFunction) -> PublicFunction:
        if name in METRICS:
            raise ValueError(f"two metrics are called {name!r}")
        METRICS[name] = Metric(name, higher_is_better, needs, compute, function)
        return function

    return register


def get_metric(name: str) -> Metric:
    """Return the metric called ``name``, or raise UnknownNameError with the nearest names."""
    if name not in METRICS:
        raise unknown("metric", name, METRICS)
    return METRICS[name]


def list_metrics(needs: Iterable[str] | None = None) -> tuple[str, ...]:
    """Return the names of all metrics, or of those computable from ``needs`` alone, sorted."""
    given = {"id", "ood", "correct"} if needs is None else set(needs)
    return tuple(sorted(name for name, entry in METRICS.items() if given.issuperset(entry.needs)))


def evaluate(counts: RankCounts, names: Iterable[str] | None = None) -> dict[str, float]:
    """Compute metrics of one score pair from its counts, all from the one sort.

    Parameters
    ----------
    counts : from `rank_counts`.
    names : the metrics wanted; by default every metric whose needs the counts meet.

    Returns
    -------
    name -> value, a fraction; NaN where a value does not exist (e.g. misclassification AUROC without errors).

    Raises
    ------
    UnknownNameError : a name that is no metric. DataError : a named metric needs what the counts do not hold.
    """
    if names is None:
        chosen = [entry for _, entry in sorted(METRICS.items()) if entry.computable(counts)]
    else:
        chosen = [get_metric(name) for name in names]
    return {entry.name: float(entry.kernel(counts.require(*entry.needs))) for entry in chosen}
