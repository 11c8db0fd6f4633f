"""Fitting a detector and scoring with it: confidences are finite, and kept in float32."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wordnet_splits.base.errors import DataError, SplitsError

from ..array_checks import MAX_TIED_SHARE, as_float32, newly_tied, tied_share
from ..arrays import CHUNK, Array, Arrays, ArrayView, Head
from ..detectors import ConfiguredDetector, Detector
from ..detectors.registry import SPLITS
from ..plugins import USER_CODE_ERRORS, describe_error
from ..threads import map_in_order, thread_count

Data = Arrays | Sequence[Arrays]  # one model's arrays, or those of each of several models
Learned = Data | Mapping[str, Arrays]  # of several splits, for a detector that fits on them
PREDICTED = ("logits", "background")
HALF_INFINITY = 0x7C00  # bits of infinity in float16; NaN is above
Heads = Head | None | Sequence[Head | None]
MOST_EQUAL = 1e-2
"""Share of the pairs of images that may have equal confidences without a note."""
HINT_TO_SPREAD = (
    "return an increasing function of them that spreads them out: less their common offset, or "
    "their logarithm"
)
SAME_RANKING = {"msp": "ts[T=1]"}
"""Shipped detector -> one that ranks as it does, and whose values float32 keeps apart."""
HEAD = "needs the weights of a linear head, and this model has none"
SHIPPED = f"{ConfiguredDetector.__module__.rpartition('.')[0]}."  # where the modules of our detectors are


class UnusableError(DataError):
    """A detector that cannot be fitted or scored on these data: of a preset, it is left out with a note."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """A detector and what it learned."""

    chosen: ConfiguredDetector
    detector: Detector
    state: Any

    @property
    def where(self) -> str:
        """The detector as errors name it."""
        return named(self.chosen)

    @property
    def probes(self) -> tuple[Any, ...]:
        """The probes that use what it learned."""
        of_state = getattr(self.detector, "probes", None)
        if of_state is None:
            return ()
        with errors_of(self.where):
            return tuple(of_state(self.state))

    def calibrated(self, data: Arrays) -> Fitted:
        """Return it as it is after ``calibrate`` has seen ID validation images."""
        detector: Any = self.detector
        with errors_of(self.where):
            return replace(self, state=detector.calibrate(self.state, _guarded(self.chosen, data)))


def named(chosen: ConfiguredDetector) -> str:
    """Return a detector as errors name it."""
    return f"detector {chosen.label!r}"


def fit(chosen: ConfiguredDetector, data: Learned | None = None, head: Heads = None) -> Fitted:
    """Fit a detector on the images of its split or splits; one that fits nothing gets none.

    Parameters
    ----------
    data : arrays with ``labels`` of the split named by ``chosen.spec.fit_on``, or a dict of them by split
        where it names several; a sequence of them, one per model, for a detector of many models.
    head : the classifier head(s), where there are any.

    Raises
    ------
    UnusableError : an array or the head that it needs is absent; there are no images, or an array holds NaN
        or infinity; or it cannot be fitted on these data.
    """
    detector = chosen.detector
    fitted = Fitted(chosen, detector, None)
    many = chosen.spec.models == "many"
    heads = head if many else [head]
    if "head" in chosen.spec.needs and any(h is None for h in _each(heads)):
        raise UnusableError(
            HEAD,
            where=fitted.where,
            hint="name the head with --head, or leave the detector out",
        )
    learn = getattr(detector, "fit", None)
    if learn is None:
        return fitted
    if data is None:
        for split in chosen.spec.splits:
            raise UnusableError(f"fits on {SPLITS[split]} images, and none are given", where=fitted.where)
        data = [Arrays({})] if many else Arrays({})
    else:
        labels = [n for n in chosen.spec.needs if n == "labels"]
        require([*chosen.needs, *labels], data, fitted.where)
        _require_images(chosen, data, fitted.where)
        _require_finite(chosen.needs, data, fitted.where)
    with errors_of(fitted.where):
        return Fitted(chosen, detector, learn(_guarded(chosen, data), _guarded(chosen, head)))


def confidence(fitted: Fitted, data: Data, *, rows: int = CHUNK, on: str = "") -> Array:
    """Return the confidence (n,) of every image as the detector gives it, higher = more in-distribution.

    Parameters
    ----------
    rows : images scored at a time. on : the set's name, for errors.

    Raises
    ------
    UnusableError : an array is absent or holds NaN or infinity; or the detector gives another shape, NaN or
        infinity, naming it.
    """

    def score(chunk: Data) -> list[Any]:
        return [fitted.detector.score(fitted.state, chunk)]

    return _confidences([fitted], score, data, rows, on)[0]


def confidences(several: Sequence[Fitted], data: Data, *, rows: int = CHUNK, on: str = "") -> list[Array]:
    """Return `confidence` of detectors of one method that learned the same, in one go where it has that."""
    if not shares_work(several[0].chosen):
        return [confidence(one, data, rows=rows, on=on) for one in several]
    first: Any = several[0].detector
    detectors = [one.detector for one in several]

    def score(chunk: Data) -> list[Any]:
        return list(first.score_each(detectors, several[0].state, chunk))

    return _confidences(several, score, data, rows, on)


def shares_work(chosen: ConfiguredDetector) -> bool:
    """Say whether values of a sweep are scored in one go."""
    return hasattr(chosen.spec.implementation, "score_each")


def _confidences(
    several: Sequence[Fitted], score: Callable[[Data], list[Any]], data: Data, rows: int, on: str
) -> list[Array]:
    places = [f"{one.where} on {on}" if on else one.where for one in several]
    for one, where in zip(several, places, strict=True):
        require(one.chosen.needs, data, where)
    names = several[0].chosen.needs

    def of_chunk(job: tuple[int, int, Data]) -> list[Array]:
        first, size, chunk = job
        _require_finite(names, chunk, places[0], first=first)
        # what the ignored warnings lead to, NaN or infinity, is refused below
        with errors_of(places[0]), np.errstate(all="ignore"):
            found = [np.asarray(scores) for scores in score(chunk)]
        return [_checked(scores, size, where) for scores, where in zip(found, places, strict=True)]

    jobs = _placed(_chunks(_guarded(several[0].chosen, data), rows))
    threaded = several[0].chosen.spec.threads
    parts = map_in_order(of_chunk, jobs, thread_count()) if threaded else [of_chunk(job) for job in jobs]
    columns = zip(*parts, strict=True) if parts else ([np.empty(0, np.float32)] for _ in several)
    return [_finite(np.concatenate(part), where) for part, where in zip(columns, places, strict=True)]


def narrowed(several: Mapping[str, Array], chosen: ConfiguredDetector) -> tuple[dict[str, Array], list[str]]:
    """Return a detector's confidences on every set in float32, as results keep them, and notes on their ties.

    Raises
    ------
    UnusableError : a detector that is not shipped gives confidences that differ, within a set or between two,
        and are equal in float32.
    """
    whole = np.concatenate(list(several.values()))
    notes = []
    if _shipped(chosen):  # nobody who uses it can change what it returns
        narrow = whole.astype(np.float32, copy=False)
        tied = newly_tied(whole)
        if tied > MAX_TIED_SHARE:
            name = chosen.spec.name
            hint = (
                f" ({SAME_RANKING[name]} ranks as {name} does, and keeps them apart)"
                if name in SAME_RANKING
                else ""
            )
            notes.append(f"{tied:.2%} of the pairs that differ in float64 are equal in float32{hint}")
    else:
        with errors_of(named(chosen)):
            as_kept = as_float32(whole, name="confidences", where=named(chosen), hint=HINT_TO_SPREAD)
        narrow = as_kept.astype(np.float32, copy=False)
    equal = tied_share(narrow)
    if equal > MOST_EQUAL:
        notes.append(
            f"{equal:.1%} of the pairs of images have equal confidences, and metrics count each as half "
            "right (a large offset? saturation?)"
        )
    parts = np.split(narrow, np.cumsum([len(scores) for scores in several.values()])[:-1])
    return dict(zip(several, parts, strict=True)), [f"{chosen.label}: {note}" for note in notes]


def _placed(chunks: Iterable[tuple[int, Data]]) -> Iterator[tuple[int, int, Data]]:
    """Yield chunks with the number of their first image."""
    first = 0
    for size, chunk in chunks:
        yield first, size, chunk
        first += size


def predicts(fitted: Fitted) -> bool:
    """Say whether a detector has predictions of its own."""
    return hasattr(fitted.detector, "predict")


def predicted(fitted: Fitted, data: Data, *, rows: int = CHUNK) -> Arrays:
    """Return the logits (and background) that a detector's own predictions are read from, chunk by chunk."""
    detector: Any = fitted.detector
    parts = []
    for _, chunk in _chunks(_guarded(fitted.chosen, data), rows):
        with errors_of(fitted.where), np.errstate(all="ignore"):
            own = detector.predict(fitted.state, chunk)
        parts.append(Arrays({name: own[name] for name in PREDICTED if name in own}))
    return Arrays.concat(parts) if parts else _each(data)[0]


@contextmanager
def errors_of(where: str) -> Iterator[None]:
    """Name the detector in its errors; whatever a user's own raises becomes one line."""
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


def _guarded(chosen: ConfiguredDetector, data: Any) -> Any:
    """Return arrays or heads; for a detector that is not shipped, copies that it may write.

    Read-only views would not do: a tensor of torch over one can be written all the same.
    """
    if data is None or _shipped(chosen):
        return data
    if isinstance(data, Arrays | Head):
        return data.copied()
    if isinstance(data, Mapping):
        return {name: _guarded(chosen, part) for name, part in data.items()}
    return [_guarded(chosen, part) for part in data]


def _shipped(chosen: ConfiguredDetector) -> bool:
    return str(getattr(chosen.spec.implementation, "__module__", "")).startswith(SHIPPED)


def _checked(scores: Array, size: int, where: str) -> Array:
    """Return one chunk's scores; truth values and long doubles as numbers that metrics take."""
    if scores.shape != (size,):
        raise UnusableError(f"gave shape {scores.shape} for {size} images instead of ({size},)", where=where)
    if scores.dtype.kind not in "fiub":
        raise UnusableError(f"gave values of type {scores.dtype} instead of numbers", where=where)
    return scores.astype(np.float64) if scores.dtype.kind == "b" or scores.itemsize > 8 else scores


def _finite(scores: Array, where: str) -> Array:
    with np.errstate(over="ignore"):
        narrow = scores.astype(np.float32)
    bad = np.flatnonzero(~np.isfinite(narrow))
    if len(bad):
        kinds = "NaN" if np.isnan(narrow[bad]).any() else "infinity"
        raise UnusableError(
            f"gave {kinds} for {len(bad):,} of {len(scores):,} images, first for image {int(bad[0]):,}",
            where=where,
            hint="scores must be finite float32 values; check this detector's inputs for these images",
        )
    return scores


def require(names: Iterable[str], data: Learned, where: str) -> None:
    """Refuse data that lack one of the named arrays."""
    for arrays in _each(data):
        for name in names:
            if name not in arrays and not arrays.under(name):
                raise UnusableError(
                    f"needs the array {name!r}, which is not there",
                    where=where,
                    hint=f"there are {', '.join(arrays) or 'none'}",
                )


def _require_images(chosen: ConfiguredDetector, data: Learned, where: str) -> None:
    """Refuse a split without images to a detector that fits on it."""
    by_split = data.items() if isinstance(data, dict) else [(s, data) for s in chosen.spec.splits]
    for split, found in by_split:
        if any(not arrays.n for arrays in _each(found)):
            raise UnusableError(f"fits on {SPLITS[split]} images, and there are none", where=where)


def _require_finite(names: Iterable[str], data: Learned, where: str, *, first: int = 0) -> None:
    """Refuse arrays with NaN or infinity, which some detectors would pass over without a word.

    Parameters
    ----------
    first : number of the first image of ``data``, for the error.
    """
    for arrays in _each(data):
        for name in names:
            views = [arrays[name]] if name in arrays else arrays.under(name).values()
            for view in views:
                bad = _not_finite(view)
                if bad is not None:
                    raise UnusableError(
                        f"array {name!r} holds NaN or infinity, first for image {first + bad:,}", where=where
                    )


def _not_finite(view: ArrayView) -> int | None:
    """Return the first row with NaN or infinity, None where there is none.

    It costs a sum of squares, and a closer look where that is not finite; in half precision, whose sums are
    slow, the greatest of the bits without the sign.
    """
    start = 0
    for chunk in view.chunks():
        if chunk.dtype == np.float16:
            finite = not chunk.size or (chunk.view(np.uint16) & 0x7FFF).max() < HALF_INFINITY
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
