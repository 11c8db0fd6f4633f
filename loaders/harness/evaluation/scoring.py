"""Fitting a detector once and scoring arrays with it in chunks; what comes out is float32 and finite."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wordnet_splits.errors import DataError

from ..arrays import CHUNK, Array, Arrays
from ..detectors import Chosen, Detector, Head

Data = Arrays | Sequence[Arrays]  # one model's arrays, or those of each of several models
Heads = Head | None | Sequence[Head | None]


@dataclass(frozen=True, eq=False)
class Fitted:
    """A detector and what it learned; ``where`` names it in errors."""

    chosen: Chosen
    detector: Detector
    state: Any

    @property
    def where(self) -> str:
        """The detector as errors name it."""
        return f"detector {self.chosen.label!r}"


def fit(chosen: Chosen, data: Data | None = None, head: Heads = None) -> Fitted:
    """Fit a detector on the ID images of its split; one that fits nothing gets none.

    Parameters
    ----------
    data : arrays with ``labels`` of the split named by ``chosen.method.fit_on``; a sequence of them, one per
        model, for a detector of many models. head : the classifier head(s), where there are any.

    Raises
    ------
    DataError : an array or the head that it needs is absent, or it cannot be fitted on these data.
    """
    detector = chosen.detector
    fitted = Fitted(chosen, detector, None)
    many = chosen.method.models == "many"
    heads = head if many else [head]
    if "head" in chosen.method.needs and any(h is None for h in _each(heads)):
        raise DataError(
            "needs the weights of a linear head, which this model has not",
            where=fitted.where,
            hint="name the head with --head, or leave the detector out",
        )
    learn = getattr(detector, "fit", None)
    if learn is None:
        return fitted
    if data is None:
        if chosen.method.fit_on is not None:
            raise DataError(
                f"fits on ID {chosen.method.fit_on} images, and none are given", where=fitted.where
            )
        data = [Arrays({})] if many else Arrays({})
    else:
        labels = [n for n in chosen.method.needs if n == "labels"]
        require([*chosen.needs, *labels], data, fitted.where)
    try:
        return Fitted(chosen, detector, learn(data, head))
    except DataError as error:
        raise DataError(error.what, where=fitted.where, hint=error.hint) from error


def confidence(fitted: Fitted, data: Data, *, rows: int = CHUNK, on: str = "") -> Array:
    """Return the confidence (n,) float32 of every image, higher = more in-distribution.

    Parameters
    ----------
    rows : images scored at a time. on : the set's name, for errors.

    Raises
    ------
    DataError : an array is absent; or the detector gives another shape, NaN or infinity, naming it.
    """
    where = f"{fitted.where} on {on}" if on else fitted.where
    require(fitted.chosen.needs, data, where)
    parts = [np.empty(0, np.float32)]
    for size, chunk in _chunks(data, rows):
        try:
            with np.errstate(all="ignore"):  # what it leads to, NaN or infinity, is refused below
                scores = np.asarray(fitted.detector.score(fitted.state, chunk))
        except DataError as error:
            raise DataError(error.what, where=where, hint=error.hint) from error
        parts.append(_narrow(scores, size, where))
    return _finite(np.concatenate(parts), where)


def _narrow(scores: Array, size: int, where: str) -> Array:
    """Return one chunk's scores as float32."""
    if scores.shape != (size,):
        raise DataError(f"gave shape {scores.shape} for {size} images, where ({size},) is due", where=where)
    if scores.dtype.kind not in "fiub":
        raise DataError(f"gave values of type {scores.dtype}, where numbers are due", where=where)
    with np.errstate(over="ignore"):
        return scores.astype(np.float32)


def _finite(scores: Array, where: str) -> Array:
    bad = np.flatnonzero(~np.isfinite(scores))
    if len(bad):
        kinds = "NaN" if np.isnan(scores[bad]).any() else "infinity"
        raise DataError(
            f"gave {kinds} for {len(bad):,} of {len(scores):,} images, first for image {int(bad[0]):,}",
            where=where,
            hint="scores are finite float32; look at this detector's inputs for these images",
        )
    return scores


def require(names: Iterable[str], data: Data, where: str) -> None:
    """Refuse data that lack one of the named arrays."""
    for arrays in _each(data):
        for name in names:
            if name not in arrays:
                raise DataError(
                    f"needs the array {name!r}, which is not there",
                    where=where,
                    hint=f"there are {', '.join(arrays) or 'none'}",
                )


def _chunks(data: Data, rows: int) -> Iterable[tuple[int, Data]]:
    if isinstance(data, Arrays):
        return ((chunk.n, chunk) for chunk in data.chunks(rows))
    sizes = {arrays.n for arrays in data}
    if len(sizes) != 1:
        raise DataError(f"several models saw different numbers of images: {sorted(sizes)}")
    return ((parts[0].n, parts) for parts in zip(*(arrays.chunks(rows) for arrays in data), strict=True))


def _each(data: Any) -> Sequence[Any]:
    return data if isinstance(data, list | tuple) else [data]
