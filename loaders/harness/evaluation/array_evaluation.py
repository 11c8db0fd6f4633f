"""`evaluate_arrays`: detectors on logits and features that a user has computed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wordnet_splits.base.errors import DataError, unknown
from wordnet_splits.base.names import printable
from wordnet_splits.base.progress import Progress
from wordnet_splits.base.schemas import validate
from wordnet_splits.metrics.counts import to_numpy

from ..activations.runs import GroupOutputs, ModelRun
from ..array_checks import LOG_PROBABILITIES, are_log_probabilities, as_float32, refuse_probabilities
from ..arrays import Array, Arrays, Head
from .notes import own_set_notes, run_notes
from .results import Results
from .run_evaluation import evaluate_runs
from .schema import MetricOptions
from .user_sets import OwnSet, content_id, digest_of, labels_of, named_sets, own_manifest, place_of

ARRAYS = ("logits", "features", "labels", "ids")
MODEL_NAME = "arrays"
"""What a model is called that nobody named: two of that name are not taken for runs of one."""
LONGEST_ID = 1000


def evaluate_arrays(
    sets: Mapping[str, Mapping[str, Any]],
    detectors: str | Sequence[Any] = "preset:simple",
    *,
    head: tuple[Any, Any] | None = None,
    classes: int | None = None,
    name: str = "own-sets",
    model: str | None = None,
    sweep: bool = False,
    bootstrap: int = 0,
    seed_boot: int = 0,
    prevalences: Sequence[float] = (0.5,),
    progress: Progress | None = None,
) -> Results:
    """Evaluate detectors on arrays: no model, no image.

    Parameters
    ----------
    sets : set -> ``{"logits": (n, K), "features": (n, D), "labels": (n,), "ids": n names}``, of which logits
        or features may be left out. A set is named ``ROLE``, ``ROLE:NAME`` or ``ROLE:NAME/SPLIT``: ``id``,
        ``near:cifar10``, ``id/train``, ``external/val``. Without a split it is of the test split. ID sets
        need labels, 0 to K - 1; those of other sets name their classes in ``by_class``. ``ids`` name the
        images; without them images are named by their arrays, and two models are not compared on them.
    detectors : as of `evaluate`. One that fits on ID train needs the set ``id/train``.
    head : weights (K, D) and biases (K,) of the last layer, for detectors that need them.
    classes : K; by default one more than the greatest ID label.
    name : what the results call the benchmark.
    model : what they call the model, by default ``arrays``. `compare` takes several results of one name that
        was given for runs of one model.
    sweep, bootstrap, seed_boot, prevalences : as of `evaluate`.

    Raises
    ------
    DataError : sets that do not fit together, or a detector that needs what is absent.

    Examples
    --------
    >>> import numpy as np
    >>> logits = np.eye(3, dtype=np.float32)
    >>> sets = {"id": {"logits": 9 * logits, "labels": [0, 1, 2]}, "near": {"logits": logits}}
    >>> found = evaluate_arrays(sets, "msp")
    >>> found.values("auroc", group="near", detector="msp")
    [1.0]
    """
    given = {"replicates": bootstrap, "seed": seed_boot, "prevalences": tuple(prevalences)}
    options = validate(MetricOptions, given, where="options of the evaluation")
    own, data = [], []
    for text, arrays in named_sets(sets).items():
        one, held = _set(text, arrays)
        own.append(one)
        data.append(held)
    widths = {key: {held[key].shape[1] for held in data if key in held} for key in ("logits", "features")}
    for key, found in widths.items():
        if len(found) > 1:
            raise DataError(f"{key} of {' and '.join(map(str, sorted(found)))} columns", where=name)
    columns = next(iter(widths["logits"]), None)
    if classes is not None and columns not in (None, classes):
        raise DataError(f"logits of {columns} columns for {classes} classes", where=name)
    manifest = own_manifest(own, name=name, classes=columns if classes is None else classes)
    linear = None if head is None else _head(head)
    outputs = {
        one.part: GroupOutputs(manifest.parts[one.part](), held, head=linear)
        for one, held in zip(own, data, strict=True)
    }
    key = _key(own, linear)
    run = ModelRun.of(model or MODEL_NAME, outputs, model_key=key, name=MODEL_NAME, user_named=bool(model))
    return evaluate_runs(
        manifest,
        [run],
        detectors,
        options=options,
        sweep=sweep,
        own=list(sets),
        notes=[
            *own_set_notes(dict(zip(sets, own, strict=True)), "row"),
            *run_notes({text: _notes(held) for text, held in zip(sets, data, strict=True)}),
        ],
        progress=progress,
    )


def _key(sets: Sequence[OwnSet], head: Head | None) -> str:
    """Return what stands for the model whose outputs are given: the SHA-256 of all of them."""
    state = hashlib.sha256()
    for one in sets:
        state.update("\x1f".join([*one.part, *one.digests, ""]).encode())
    for array in () if head is None else (head.weight, head.bias):
        state.update(array.tobytes())
    return state.hexdigest()


def _head(pair: Any) -> Head:
    if not isinstance(pair, list | tuple) or len(pair) != 2:
        raise DataError("is not a pair of weights (K, D) and biases (K,)", where="head")
    weight, bias = pair
    given = Head(_matrix(weight, "weights", "head"), _numpy(bias, "head").astype(np.float32))
    if given.bias.shape != given.weight.shape[:1]:
        raise DataError(
            f"biases of shape {given.bias.shape} for {len(given.weight)} rows of weights", where="head"
        )
    return given


def _numpy(given: Any, where: str) -> Array:
    """Return an array or a tensor as a numpy array; bfloat16, which numpy lacks, as float32."""
    array = to_numpy(given, where=where)
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else array


def _set(text: str, given: Any) -> tuple[OwnSet, Arrays]:
    """Return a set and its arrays, checked; labels stay out of those of test images."""
    role, group, split = place_of(text)
    if not isinstance(given, Mapping):
        what = f"{type(given).__name__} is given in place of its arrays by name"
        raise DataError(what, where=text, hint='as in {"logits": ..., "labels": ...}')
    for key in given:
        if key not in ARRAYS:
            raise unknown("array", str(key), ARRAYS, where=text)
    arrays = {key: _matrix(given[key], key, text) for key in ("features", "logits") if key in given}
    if not arrays:
        raise DataError("neither logits nor features are given", where=text)
    lengths = {key: len(array) for key, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise DataError(f"arrays differ in rows: {lengths}", where=text)
    n = next(iter(lengths.values()))
    if not n:
        raise DataError("there are no images", where=text)
    named = given.get("labels")
    labels = labels_of(None if named is None else _numpy(named, text), n, role=role, where=text)
    if split != "test":
        arrays["labels"] = labels if role in ("id", "csid") else np.full(n, -1, np.int64)
    digests = _digests([array for array in arrays.values() if array.ndim > 1])
    ids = _ids(given["ids"], n, text) if "ids" in given else list(map(content_id, range(n), digests))
    return OwnSet(role, group, split, labels, ids, digests), Arrays(arrays)


def _notes(arrays: Arrays) -> list[str]:
    logits = np.asarray(arrays["logits"]) if "logits" in arrays else np.empty((0, 0))
    return [LOG_PROBABILITIES] if are_log_probabilities(logits) else []


def _digests(arrays: Sequence[Array]) -> list[str]:
    """Return the digest of every row of some arrays."""
    return [digest_of(*(row.tobytes() for row in rows)) for rows in zip(*arrays, strict=True)]


def _ids(given: Any, n: int, where: str) -> list[str]:
    """Return the names of n images.

    Raises
    ------
    DataError : not n different texts or whole numbers, or one that no table can hold.
    """
    listed = list(given) if isinstance(given, list | tuple | range) else _numpy(given, where).tolist()
    if not isinstance(listed, list) or not all(isinstance(one, str | int | np.integer) for one in listed):
        raise DataError("ids are not texts or whole numbers", where=where)
    ids = [str(one) for one in listed]
    if len(ids) != n or len(set(ids)) != n:
        raise DataError(
            f"{len(ids):,} ids, {len(set(ids)):,} of them different, for {n:,} images", where=where
        )
    for one in ids:
        if not one or len(one) > LONGEST_ID or not one.isprintable():
            raise DataError(f"{printable(one)!r} is no name of an image", where=where)
    return ids


def _matrix(given: Any, key: str, where: str) -> Array:
    """Return an (n, width) float32 or float16 array of numbers that are finite, and differ as those given."""
    array = _numpy(given, where)
    if array.ndim != 2 or array.dtype.kind not in "fiu":
        raise DataError(
            f"{key} of shape {array.shape} and type {array.dtype}; an (n, width) array is wanted", where=where
        )
    array = as_float32(array, name=key, where=where, by_column=key == "features")
    if not np.isfinite(array).all():
        raise DataError(f"{key} hold NaN or infinity", where=where)
    if key == "logits":
        refuse_probabilities(array, where=where, hint="give what goes into the softmax")
    return array
