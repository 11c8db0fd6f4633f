"""Named row-aligned arrays, in memory or memory-mapped and read in chunks: the input of detectors.

Names in use (n rows, one per image, in the order of the image table):

- ``features`` (n, D) float32 (or float16): the input of the classifier head. Never restricted.
- ``logits`` (n, K) float32: the head's output, restricted to the benchmark's classes by the class map.
- ``background`` (n,) float32, only with a background class: its logit. It is part of the denominator of every
  softmax, ``p_k = exp(z_k) / (sum_j exp(z_j) + exp(background))``, but not a class (Palechor: the column is
  dropped after softmax).
- ``labels`` (n,) int64, only on train and val: the benchmark's label, -1 for images without a label.
- a probe's outputs, e.g. ``odin[T=1000,eps=0.0014]/logits`` (n, K).

Detectors share them, so they are read-only; detectors of users get writable copies (`Arrays.copied`).
"""

from __future__ import annotations

import hashlib
import os
import threading
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from threadpoolctl import ThreadpoolController

from wordnet_splits.base.errors import DataError, unknown

Array = npt.NDArray[Any]
Job = TypeVar("Job")
Result = TypeVar("Result")
CHUNK = 4096
COSINE_SCALE = 100.0
"""Factor of cosine similarities in logits of zero-shot models: the maximum of CLIP's learned factor."""
NEEDS_HEAD = "needs the weights of a linear head, and this model has none"
"""Reason why a detector cannot be used, as a predicate."""


def array_of(tensor: Any) -> Array:
    """Return the values of a tensor in float32; a float32 tensor on the CPU shares its memory."""
    return np.asarray(tensor.detach().float().cpu().numpy())


def read_only(array: Array) -> Array:
    """Return a read-only view of an array."""
    view = array.view()
    view.flags.writeable = False
    return view


class ArrayView:
    """One array (n, ...) in consecutive parts (shards), read only where it is indexed.

    ``view[i]``, ``view[a:b]``, ``view[index array or mask]`` and ``np.asarray(view)`` return read-only numpy
    arrays; a slice within one part is a view, others are copies. ``chunks(rows)`` reads in steps of bounded
    memory; ``rows(a, b)`` and ``columns(index)`` return another view without reading.

    Parameters
    ----------
    copied : whether every read returns a writable copy, for users' code.
    """

    __slots__ = ("_columns", "_copied", "_offsets", "_parts")

    def __init__(
        self, parts: Sequence[Array], columns: npt.ArrayLike | None = None, *, copied: bool = False
    ) -> None:
        if not parts:
            raise DataError("an array needs at least one part, which may have no rows")
        reference = parts[0]
        if len(parts) > 1 and any(
            p.shape[1:] != reference.shape[1:] or p.dtype != reference.dtype for p in parts
        ):
            kinds = sorted({f"{p.dtype} {list(p.shape[1:])}" for p in parts})
            raise DataError(f"parts of one array differ in type or shape: {', '.join(kinds)}")
        self._parts = tuple(map(read_only, parts))
        self._copied = copied
        self._offsets = [0, *accumulate(len(p) for p in parts)]
        self._columns = None if columns is None else np.asarray(columns, dtype=np.int64)

    @classmethod
    def of(cls, array: npt.ArrayLike | ArrayView) -> ArrayView:
        """Wrap an array; return a view unchanged."""
        return array if isinstance(array, ArrayView) else cls([np.asarray(array)])

    @classmethod
    def concat(cls, views: Sequence[ArrayView]) -> ArrayView:
        """Join the rows of ``views``, without copying."""
        if len({v._columns if v._columns is None else tuple(v._columns.tolist()) for v in views}) > 1:
            raise DataError("arrays restricted to different columns cannot be joined")
        parts = [part for view in views for part in view._parts]
        columns = views[0]._columns if views else None
        return cls(parts, columns, copied=any(view._copied for view in views))

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, ...) as for a numpy array."""
        rest = self._parts[0].shape[1:]
        return (len(self), *(rest if self._columns is None else (*rest[:-1], len(self._columns))))

    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type as stored."""
        return self._parts[0].dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def __len__(self) -> int:
        return self._offsets[-1]

    def __repr__(self) -> str:
        return f"ArrayView(shape={self.shape}, dtype={self.dtype}, parts={len(self._parts)})"

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, tuple):
            if not key:
                return self[:]
            rows = self[key[0]]
            return rows[key[1:] if isinstance(key[0], int | np.integer) else (slice(None), *key[1:])]
        if isinstance(key, slice):
            start, stop, step = key.indices(len(self))
            if step == 1:
                return self._read(start, max(start, stop))
            return self._gather(np.arange(start, stop, step))
        if isinstance(key, int | np.integer):
            return self._gather(np.array([int(key)]))[0]
        return self._gather(np.asarray(key))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        whole = self._read(0, len(self))
        return whole.astype(dtype or whole.dtype, copy=bool(copy))

    def __iter__(self) -> Iterator[Array]:
        for chunk in self.chunks():
            yield from chunk

    def copied(self) -> ArrayView:
        """Return the same view, with writable copies for every read."""
        return ArrayView(self._parts, self._columns, copied=True)

    def chunks(self, rows: int = CHUNK) -> Iterator[Array]:
        """Yield consecutive arrays of ``rows`` rows (the last may be shorter); nothing for an empty array."""
        if rows < 1:
            raise DataError(f"chunks of {rows} rows")
        for start in range(0, len(self), rows):
            yield self._read(start, min(start + rows, len(self)))

    def rows(self, start: int, stop: int) -> ArrayView:
        """Return rows start..stop-1 as another view, unread."""
        start, stop, _ = slice(start, stop).indices(len(self))
        return ArrayView(self._pieces(start, max(start, stop)), self._columns, copied=self._copied)

    def columns(self, index: npt.ArrayLike) -> ArrayView:
        """Return the given columns (last axis), in the given order, as another view, unread."""
        if self.ndim < 2:
            raise DataError(f"an array of shape {self.shape} has no columns")
        columns = np.asarray(index, dtype=np.int64)
        out_of_range = columns[(columns < 0) | (columns >= self.shape[-1])]
        if out_of_range.size:
            raise DataError(f"column {int(out_of_range[0])} of an array that has {self.shape[-1]}")
        selected = columns if self._columns is None else self._columns[columns]
        return ArrayView(self._parts, selected, copied=self._copied)

    def _pieces(self, start: int, stop: int) -> list[Array]:
        """Return rows start..stop-1 by part: at least one array, which may have no rows."""
        start_part = min(bisect_right(self._offsets, start), len(self._parts)) - 1
        end = max(bisect_left(self._offsets, stop), start_part + 1)
        return [
            part[max(0, start - begin) : stop - begin]
            for part, begin in zip(self._parts[start_part:end], self._offsets[start_part:end], strict=True)
        ]

    def _read(self, start: int, stop: int) -> Array:
        """Return rows start..stop-1."""
        pieces = self._pieces(start, stop)
        rows = self._restrict(pieces[0] if len(pieces) == 1 else np.concatenate(pieces))
        if not self._copied:
            return read_only(rows)
        return np.array(rows) if len(pieces) == 1 and self._columns is None else rows

    def _gather(self, index: Array) -> Array:
        """Return rows by number (negative from the end) or by mask, in the given order."""
        n = len(self)
        if index.dtype == np.bool_:
            if index.shape != (n,):
                raise DataError(f"a mask of shape {index.shape} for an array of {n} rows")
            index = np.flatnonzero(index)
        if index.size == 0:
            return self._read(0, 0)
        out_of_range = index[(index < -n) | (index >= n)]
        if out_of_range.size:
            raise IndexError(f"row {int(out_of_range[0])} of an array of {n} rows")
        index = np.where(index < 0, index + n, index)
        out = np.empty((len(index), *self._parts[0].shape[1:]), self.dtype)
        owner = np.searchsorted(self._offsets, index, side="right") - 1
        for number in np.unique(owner):
            of_part = owner == number
            out[of_part] = self._parts[number][index[of_part] - self._offsets[number]]
        rows = self._restrict(out)
        return rows if self._copied else read_only(rows)

    def _restrict(self, rows: Array) -> Array:
        return rows if self._columns is None else rows[..., self._columns]


class Arrays(Mapping[str, ArrayView]):
    """Arrays of the same images under their names (see the module); a mapping name -> `ArrayView`.

    An unknown name is an error that lists the available ones; ``n`` is the number of rows. ``chunks(rows)``
    yields `Arrays` of consecutive rows, unread.

    >>> data = Arrays.of(logits=np.eye(3, dtype=np.float32), labels=np.arange(3))
    >>> data["logits"].shape, data.n, [c.n for c in data.chunks(2)]
    ((3, 3), 3, [2, 1])
    """

    def __init__(self, arrays: Mapping[str, npt.ArrayLike | ArrayView]) -> None:
        self._arrays = {name: ArrayView.of(array) for name, array in arrays.items()}
        lengths = {name: len(view) for name, view in self._arrays.items()}
        if len(set(lengths.values())) > 1:
            raise DataError(f"arrays of one set of images differ in rows: {lengths}")
        self.n = next(iter(lengths.values()), 0)

    @classmethod
    def of(cls, **arrays: npt.ArrayLike | ArrayView) -> Arrays:
        """Wrap arrays in memory: ``Arrays.of(features=..., logits=..., labels=...)``."""
        return cls(arrays)

    @classmethod
    def concat(cls, groups: Sequence[Arrays]) -> Arrays:
        """Join the rows of several groups, for the arrays that all groups have."""
        if not groups:
            raise DataError("no groups to join")
        shared = [name for name in groups[0] if all(name in group for group in groups)]
        return cls({name: ArrayView.concat([group[name] for group in groups]) for name in shared})

    def __getitem__(self, name: str) -> ArrayView:
        try:
            return self._arrays[name]
        except KeyError:
            raise unknown("array", name, self._arrays) from None

    def __contains__(self, name: object) -> bool:
        return name in self._arrays

    def get(self, name: str, default: Any = None) -> Any:
        """Return the array of that name, or ``default``."""
        return self._arrays.get(name, default)

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __repr__(self) -> str:
        return f"Arrays(n={self.n}, {', '.join(f'{k}{list(v.shape[1:])}' for k, v in self.items())})"

    def under(self, unit: str) -> dict[str, ArrayView]:
        """Return a probe's arrays without the prefix: ``odin[...]/logits`` as ``logits``."""
        return {
            name.removeprefix(f"{unit}/"): view for name, view in self.items() if name.startswith(f"{unit}/")
        }

    def chunks(self, rows: int = CHUNK) -> Iterator[Arrays]:
        """Yield `Arrays` of ``rows`` consecutive rows (the last may have fewer)."""
        for start in range(0, self.n, rows):
            yield self.rows(start, start + rows)

    def rows(self, start: int, stop: int) -> Arrays:
        """Return rows start..stop-1 of every array, unread."""
        return Arrays({name: view.rows(start, stop) for name, view in self._arrays.items()})

    def copied(self) -> Arrays:
        """Return the same arrays, with writable copies for every read."""
        return Arrays({name: view.copied() for name, view in self._arrays.items()})

    def replace(self, **arrays: npt.ArrayLike | ArrayView) -> Arrays:
        """Return the same arrays with some replaced or added."""
        return Arrays({**self._arrays, **arrays})


@dataclass(frozen=True, eq=False)
class Head:
    """A linear classifier head: ``logits = features @ weight.T + bias``, rows as the columns of the logits.

    Attributes
    ----------
    weight : (K, D) float32.
    bias : (K,) float32, zeros for a head without bias. Both are read-only, except in
        a `copied` head.
    """

    weight: Array
    bias: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", read_only(self.weight))
        object.__setattr__(self, "bias", read_only(self.bias))

    def copied(self) -> Head:
        """Return a head with writable copies of the arrays."""
        head = Head(self.weight, self.bias)
        object.__setattr__(head, "weight", np.array(self.weight))
        object.__setattr__(head, "bias", np.array(self.bias))
        return head

    def rows(self, index: npt.ArrayLike) -> Head:
        """Return the head of the given classes, in that order."""
        classes = np.asarray(index, dtype=np.int64)
        return Head(self.weight[classes], self.bias[classes])


@dataclass(frozen=True, eq=False)
class FittedArrays(Mapping[str, Array]):
    """Arrays fitted by a detector, for a probe that uses them.

    ``key``, a part of the probe's name, is 16 hex digits of the SHA-256 of names, types, shapes and bytes.
    """

    arrays: Mapping[str, Array]
    key: str = field(init=False)

    def __post_init__(self) -> None:
        digest = hashlib.sha256()
        for name, array in sorted(self.arrays.items()):
            digest.update(f"{name}\x1f{array.dtype.str}\x1f{array.shape}\x1f".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        object.__setattr__(self, "key", digest.hexdigest()[:16])

    def __getitem__(self, name: str) -> Array:
        return self.arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.arrays)

    def __len__(self) -> int:
        return len(self.arrays)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FittedArrays) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


def map_in_order(function: Callable[[Job], Result], jobs: Iterable[Job], threads: int) -> list[Result]:
    """Return the result of each job, in order; results do not depend on the number of threads.

    A matrix product runs on the thread that calls it: threads of BLAS would compete with these, and would
    split a product differently on other machines.

    Raises
    ------
    Exception : the error of the first job that fails; later jobs may not be started.
    """
    jobs = list(jobs)
    threads = min(threads, len(jobs))
    with _libraries().limit(limits=1, user_api="blas"):
        if threads < 2 or getattr(_worker, "active", False):  # a job may itself map other jobs
            return [function(job) for job in jobs]
        return list(_pool(threads, os.getpid()).map(function, jobs))


_worker = threading.local()


def _mark_worker() -> None:
    _worker.active = True


@cache
def _pool(threads: int, process: int) -> ThreadPoolExecutor:
    """Return the threads of a process; a forked process needs its own."""
    return ThreadPoolExecutor(threads, "harness", initializer=_mark_worker)


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()
