"""Fit a detector and score images with it: confidences are finite, and stored in float64."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wordnet_splits.base.errors import DataError, SplitsError, UnusableError
from wordnet_splits.base.untrusted import USER_CODE_ERRORS, describe_error
from wordnet_splits.base.workers import thread_count
from wordnet_splits.metrics.counts import to_numpy

from ..data.array_checks import tied_share
from ..data.arrays import CHUNK, NEEDS_HEAD, Array, Arrays, ArrayView, Head, map_in_order
from ..detectors import ConfiguredDetector, Detector
from ..detectors.registry import SPLITS

Data = Arrays | Sequence[Arrays]
"""Arrays of a model, or of each of several models."""
FitData = Data | Mapping[str, Arrays]
"""The same, or arrays by split for a detector that fits on several splits."""
Heads = Head | None | Sequence[Head | None]
PREDICTED = ("logits", "background")
FLOAT16_INFINITY = 0x7C00
"""Bits of infinity in float16; NaN is above."""
MAX_EQUAL_SHARE = 1e-2
"""Share of the pairs of images that may have equal confidences without a note."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """A detector and its fitted state."""

    configured: ConfiguredDetector
    detector: Detector
    state: Any

    @property
    def where(self) -> str:
        """The detector's name in errors."""
        return detector_name(self.configured)

    @property
    def probes(self) -> tuple[Any, ...]:
        """The probes that use the fitted state."""
        probes_of_state = getattr(self.detector, "probes", None)
        if probes_of_state is None:
            return ()
        with errors_of(self.where):
            return tuple(probes_of_state(self.state))

    def calibrated(self, data: Arrays) -> Fitted:
        """Return it with the state that ``calibrate`` gives on ID validation images."""
        detector: Any = self.detector
        with errors_of(self.where):
            return replace(self, state=detector.calibrate(self.state, _guarded(self.configured, data)))


def detector_name(configured: ConfiguredDetector) -> str:
    """Return a detector's name in errors."""
    return f"detector {configured.label!r}"


def fit(configured: ConfiguredDetector, data: FitData | None = None, head: Heads = None) -> Fitted:
    """Fit a detector on the images of its split or splits; a detector without ``fit`` needs no images.

    Parameters
    ----------
    data : arrays with ``labels`` of the split named by ``method.fit_on``; if it names several, a dict of
        arrays by split; for a detector of many models, a sequence with such an entry per model.
    head : the classifier head(s), if any.

    Raises
    ------
    UnusableError : a required array or head is absent; there are zero images, or an array holds NaN or
        infinity; or the detector cannot be fitted on these data.
    """
    detector, method = configured.detector, configured.spec
    fitted = Fitted(configured, detector, None)
    many = method.models == "many"
    heads = _each(head if many else [head])
    if "head" in method.needs and any(h is None for h in heads):
        raise UnusableError(
            NEEDS_HEAD, where=fitted.where, hint="name the head with --head, or leave the detector out"
        )
    fit_detector = getattr(detector, "fit", None)
    if fit_detector is None:
        return fitted
    if data is None:
        for split in configured.splits:
            raise UnusableError(f"fits on {SPLITS[split]} images, and none are given", where=fitted.where)
        data = [Arrays({})] if many else Arrays({})
    else:
        labels = ["labels"] if "labels" in method.needs else []
        require([*configured.needs, *labels], data, fitted.where)
        _require_images(configured, data, fitted.where)
        _require_finite(configured.needs, data, fitted.where)
    with errors_of(fitted.where):
        return replace(fitted, state=fit_detector(_guarded(configured, data), _guarded(configured, head)))


def confidence(fitted: Fitted, data: Data, *, rows: int = CHUNK, on: str = "") -> Array:
    """Return the confidence (n,) float64 of every image; higher = more in-distribution.

    Raises
    ------
    UnusableError : an array is absent or holds NaN or infinity; or the detector gives another shape, NaN or
        infinity.
    """

    def score(chunk: Data) -> list[Any]:
        return [fitted.detector.score(fitted.state, chunk)]

    return _confidences([fitted], score, data, rows, on)[0]


def confidences(candidates: Sequence[Fitted], data: Data, *, rows: int = CHUNK, on: str = "") -> list[Array]:
    """Return `confidence` of detectors that share a method and fit, in a single pass if the method can."""
    if not shares_work(candidates[0].configured):
        return [confidence(candidate, data, rows=rows, on=on) for candidate in candidates]
    scorer: Any = candidates[0].detector
    detectors = [candidate.detector for candidate in candidates]

    def score(chunk: Data) -> list[Any]:
        return list(scorer.score_each(detectors, candidates[0].state, chunk))

    return _confidences(candidates, score, data, rows, on)


def shares_work(configured: ConfiguredDetector) -> bool:
    """Return whether values of a sweep are scored in one pass."""
    return hasattr(configured.spec.implementation, "score_each")


def _confidences(
    candidates: Sequence[Fitted], score: Callable[[Data], list[Any]], data: Data, rows: int, on: str
) -> list[Array]:
    wheres = [f"{candidate.where} on {on}" if on else candidate.where for candidate in candidates]
    for candidate, where in zip(candidates, wheres, strict=True):
        require(candidate.configured.needs, data, where)
    configured = candidates[0].configured

    def score_chunk(job: tuple[int, int, Data]) -> list[Array]:
        start, size, chunk = job
        _require_finite(configured.needs, chunk, wheres[0], start=start)
        # the ignored warnings lead to NaN or infinity, which raise an error below
        with errors_of(wheres[0]), np.errstate(all="ignore"):
            arrays = [to_numpy(scores) for scores in score(chunk)]
        return [_checked(scores, size, where) for scores, where in zip(arrays, wheres, strict=True)]

    jobs = _numbered(_chunks(_guarded(configured, data), rows))
    threaded = configured.spec.threads
    parts = (
        map_in_order(score_chunk, jobs, thread_count()) if threaded else [score_chunk(job) for job in jobs]
    )
    columns = zip(*parts, strict=True) if parts else ([np.empty(0)] for _ in candidates)
    return [_finite(np.concatenate(part), where) for part, where in zip(columns, wheres, strict=True)]


def tie_notes(by_set: Mapping[str, Array], label: str) -> list[str]:
    """Return a note if more than `MAX_EQUAL_SHARE` of the pairs of images have equal confidences."""
    share = tied_share(np.concatenate(list(by_set.values())))
    if share <= MAX_EQUAL_SHARE:
        return []
    return [
        f"{label}: {share:.1%} of the pairs of images have equal confidences: ties count half; is the score "
        "saturated?"
    ]


def _numbered(chunks: Iterable[tuple[int, Data]]) -> Iterator[tuple[int, int, Data]]:
    """Yield (index of the first image, size, chunk)."""
    start = 0
    for size, chunk in chunks:
        yield start, size, chunk
        start += size


def has_predictions(fitted: Fitted) -> bool:
    """Return whether a detector has predictions of its own."""
    return hasattr(fitted.detector, "predict")


def predicted(fitted: Fitted, data: Data) -> Arrays:
    """Return the logits (and background) of a detector's own predictions, computed chunk by chunk."""
    detector: Any = fitted.detector
    parts = []
    for size, chunk in _chunks(_guarded(fitted.configured, data), CHUNK):
        with errors_of(fitted.where), np.errstate(all="ignore"):
            outputs = detector.predict(fitted.state, chunk)
            arrays = {name: to_numpy(outputs[name]) for name in PREDICTED if name in outputs}
        logits = _each(chunk)[0].get("logits")
        _require_predictions(arrays, size, None if logits is None else logits.shape[1], fitted.where)
        parts.append(Arrays(arrays))
    return Arrays.concat(parts) if parts else _each(data)[0]


def _require_predictions(arrays: Mapping[str, Array], size: int, width: int | None, where: str) -> None:
    """Raise UnusableError unless a chunk's logits are finite numbers (n, K), its background (n,)."""
    if "logits" not in arrays:
        raise UnusableError("its predictions have no logits", where=where)
    columns = arrays["logits"].shape[1:2] if width is None else (width,)
    for name, array in arrays.items():
        expected = (size,) if name == "background" else (size, *columns)
        if array.shape != expected or not array.size or array.dtype.kind not in "fiu":
            message = f"its predictions have {name} of shape {array.shape} and type {array.dtype}"
            raise UnusableError(message, where=where, hint=f"return numbers of shape {expected}")
        if not np.isfinite(array).all():
            raise UnusableError(f"its predictions have {name} of NaN or infinity", where=where)


@contextmanager
def errors_of(where: str) -> Iterator[None]:
    """Name the detector in its errors; any exception of a user's own detector becomes one line."""
    try:
        yield
    except SplitsError as error:
        raise UnusableError(error.what, where=where, hint=error.hint) from error
    except USER_CODE_ERRORS as error:
        raise UnusableError(
            f"raises {describe_error(error)}",
            where=where,
            hint="the error is the detector's own; in Python, __cause__ has its traceback",
        ) from error


def _guarded(configured: ConfiguredDetector, data: Any) -> Any:
    """Return arrays or heads; for a detector that is not shipped, copies that it may write.

    Read-only views do not suffice: torch can write to a tensor that shares a read-only view's memory.
    """
    if data is None or configured.spec.built_in:
        return data
    if isinstance(data, Arrays | Head):
        return data.copied()
    if isinstance(data, Mapping):
        return {name: _guarded(configured, part) for name, part in data.items()}
    return [_guarded(configured, part) for part in data]


def _checked(scores: Array, size: int, where: str) -> Array:
    """Return the scores of a chunk in float64."""
    if scores.shape != (size,):
        raise UnusableError(f"gave shape {scores.shape} for {size} images instead of ({size},)", where=where)
    if scores.dtype.kind not in "fiub":
        raise UnusableError(f"gave values of type {scores.dtype} instead of numbers", where=where)
    if (
        scores.dtype.kind in "iu"
        and (scores.astype(np.float64).astype(object) != scores.astype(object)).any()
    ):
        raise UnusableError("gave integers beyond 2**53, which float64 rounds", where=where)
    with np.errstate(over="ignore"):  # infinity raises an error later
        return scores.astype(np.float64)


def _finite(scores: Array, where: str) -> Array:
    bad = np.flatnonzero(~np.isfinite(scores))
    if len(bad):
        kinds = "NaN" if np.isnan(scores[bad]).any() else "infinity"
        raise UnusableError(
            f"gave {kinds} for {len(bad):,} of {len(scores):,} images, first for image {int(bad[0]):,}",
            where=where,
            hint="scores must be finite; check this detector's inputs for these images",
        )
    return scores


def require(names: Iterable[str], data: FitData, where: str) -> None:
    """Raise UnusableError unless all of the named arrays are there."""
    for arrays in _each(data):
        for name in names:
            if name not in arrays and not arrays.under(name):
                raise UnusableError(
                    f"needs the array {name!r}, which is not there",
                    where=where,
                    hint=f"there are {', '.join(arrays) or 'none'}",
                )


def _require_images(configured: ConfiguredDetector, data: FitData, where: str) -> None:
    """Raise UnusableError for a split without images that a detector fits on."""
    by_split = data.items() if isinstance(data, dict) else [(s, data) for s in configured.splits]
    for split, split_data in by_split:
        if any(not arrays.n for arrays in _each(split_data)):
            raise UnusableError(f"fits on {SPLITS[split]} images, and there are none", where=where)


def _require_finite(names: Iterable[str], data: FitData, where: str, *, start: int = 0) -> None:
    """Raise UnusableError for arrays with NaN or infinity, which some detectors would not notice."""
    for arrays in _each(data):
        for name in names:
            views = [arrays[name]] if name in arrays else arrays.under(name).values()
            for view in views:
                bad = _first_not_finite(view)
                if bad is not None:
                    raise UnusableError(
                        f"array {name!r} holds NaN or infinity, first for image {start + bad:,}", where=where
                    )


def _first_not_finite(view: ArrayView) -> int | None:
    """Return the first row with NaN or infinity, None if all values are finite.

    The check computes a sum of squares per chunk, and searches the chunk only if the sum is not finite. In
    half precision, whose sums are slow, it computes the maximum of the bits without the sign instead.
    """
    start = 0
    for chunk in view.chunks():
        if chunk.dtype == np.float16:
            finite = not chunk.size or (chunk.view(np.uint16) & 0x7FFF).max() < FLOAT16_INFINITY
        else:
            with np.errstate(all="ignore"):
                flat = chunk.reshape(-1)
                finite = bool(np.isfinite(np.dot(flat, flat)))
        if not finite:
            bad = np.flatnonzero(~np.isfinite(chunk).reshape(len(chunk), -1).all(axis=1))
            if len(bad):
                return start + int(bad[0])
        start += len(chunk)
    return None


def _chunks(data: Data, rows: int) -> Iterable[tuple[int, Data]]:
    if isinstance(data, Arrays):
        return ((chunk.n, chunk) for chunk in data.chunks(rows))
    sizes = {arrays.n for arrays in data}
    if len(sizes) != 1:
        raise DataError(f"several models saw different numbers of images: {sorted(sizes)}")
    return ((parts[0].n, parts) for parts in zip(*(arrays.chunks(rows) for arrays in data), strict=True))


def _each(data: Any) -> Sequence[Any]:
    if isinstance(data, Mapping) and not isinstance(data, Arrays):
        return list(data.values())
    return data if isinstance(data, list | tuple) else [data]
