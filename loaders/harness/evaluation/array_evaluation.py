"""`evaluate_arrays`: detectors on logits and features computed by the user."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from wordnet_splits.base.errors import DataError, unknown
from wordnet_splits.base.names import printable
from wordnet_splits.base.progress import Progress, choose_progress
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.metrics.counts import to_numpy

from ..data.array_checks import (
    STANDARDISED,
    as_float32,
    gives_logits,
    is_standardised,
    logit_notes,
    refuse_probabilities,
)
from ..data.arrays import Array, Arrays, Head
from ..extraction.outputs import GroupOutputs, ModelRun
from ..models.class_map import ClassMapping, class_map
from ..models.origin import IN_ARRAYS
from ..results.metadata import metric_options
from ..results.results import Results
from .array_files import read_sets
from .benchmark_arrays import BenchmarkArrays
from .notes import custom_set_notes, rounding_notes, run_notes
from .run_evaluation import evaluate_runs
from .sets import (
    CustomSet,
    checked_labels,
    content_id,
    digest_of,
    manifest_of_sets,
    parse_set_name,
    refuse_equal_sets,
    require_sets,
)

ARRAYS = ("logits", "features", "labels", "ids")
MODEL_NAME = "arrays"
"""Default name of a model; models that share this default are not treated as runs of the same model."""
MAX_ID_LENGTH = 1000


def evaluate_arrays(
    sets: Mapping[str, Mapping[str, Any]] | str | Path,
    detectors: str | Sequence[Any] = "preset:simple",
    *,
    benchmark: Manifest | str | Path | None = None,
    ids: Mapping[str, Sequence[str]] | None = None,
    groups: Sequence[str] | None = None,
    allow_missing: bool = False,
    mapping: ClassMapping | None = None,
    restrict: str = "columns",
    background: int | str | None = None,
    head: tuple[Any, Any] | None = None,
    classes: int | None = None,
    name: str | None = None,
    model: str | None = None,
    sweep: bool | str = False,
    bootstrap: int = 0,
    seed_boot: int = 0,
    over: str = "images",
    cut: int | None = None,
    prevalences: Sequence[float] = (0.5,),
    progress: Progress | bool | None = None,
) -> Results:
    """Evaluate detectors on arrays, without a model or images: custom sets, or a benchmark's groups.

    Parameters
    ----------
    sets : set -> ``{"logits": (n, K), "features": (n, D), "labels": (n,), "ids": n names}``, with logits,
        features or both. A set is named ``ROLE``, ``ROLE:NAME`` or ``ROLE:NAME/SPLIT``: ``id``,
        ``near:cifar10``, ``id/train``, ``external/val``. The default split is test. Labels of ID sets are 0
        to K - 1; without labels of the ID test sets, accuracy and all metrics that depend on accuracy are
        left out. Labels of other sets name their classes in ``by_class``. ``ids`` name the images; without
        ids, images are named by their arrays, and two models cannot be compared on the same images.
        With a benchmark, a set is named as its group, ``GROUP`` or ``GROUP/SPLIT``, and needs ids. Or a
        folder with a file for each set, see `array_files.read_sets`.
    detectors : as of `evaluate`. Detectors that fit on ID train need the set ``id/train``, or the benchmark's
        train set.
    benchmark : a manifest, its name, or its folder. Its images are matched with the rows by id, in any order;
        labels are the benchmark's.
    ids : set -> ids of its images, for sets without an array of ids. `image_ids` returns the ids of a group.
    groups : the sets of the benchmark to evaluate in addition to ID; all by default.
    allow_missing : leave out images of the benchmark that have no row; the results record these.
    mapping, restrict, background : which columns are which labels of the benchmark, as of `load_model`.
    head : weights (K, D) and biases (K,) of the last layer, for detectors that need them.
    classes : K, of custom sets; by default one more than the greatest ID label.
    name : of custom sets in the results, by default ``own-sets``.
    model : name of the model, by default ``arrays``. `compare` treats results with the same given name as
        runs of the same model.
    sweep, bootstrap, seed_boot, over, cut, prevalences, progress : as of `evaluate`; the level ``classes``
        needs labels of the OOD sets.

    Raises
    ------
    DataError : sets that do not fit together, images of the benchmark without a row, rows without an image in
        the benchmark, labels that differ from the benchmark's, or a detector whose input is absent.

    Examples
    --------
    >>> import numpy as np
    >>> logits = np.eye(3, dtype=np.float32)
    >>> sets = {"id": {"logits": 9 * logits, "labels": [0, 1, 2]}, "near": {"logits": logits - 1}}
    >>> results = evaluate_arrays(sets, "msp")
    >>> results.values("auroc", group="near", detector="msp")["value"].tolist()
    [1.0]
    """
    options = metric_options(bootstrap, seed_boot, prevalences, over, cut)
    progress = choose_progress(progress)
    if isinstance(sets, str | Path):
        sets, folder_head = read_sets(Path(sets))
        head = head or folder_head
    sets = with_ids(require_sets(sets), ids or {})
    if benchmark is not None:
        refuse_options("a benchmark", classes=classes, name=name)
        of_benchmark = BenchmarkArrays(
            load_manifest(benchmark),
            groups,
            allow_missing,
            partial(
                class_map,
                mapping=mapping,
                restrict=restrict,
                background=background,
                where=model or MODEL_NAME,
            ),
        )
        checked_sets = {set_name: checked_arrays(set_name, arrays) for set_name, arrays in sets.items()}
        outputs = of_benchmark.outputs(
            checked_sets, _checked_head(head, {name: arrays for name, (arrays, _) in checked_sets.items()})
        )
        run = ModelRun.of(
            *(model or MODEL_NAME, outputs),
            weights=IN_ARRAYS,
            user_named=bool(model),
            allow_missing=allow_missing,
        )
        return evaluate_runs(
            of_benchmark.manifest,
            [run],
            detectors,
            options=options,
            sweep=sweep,
            groups=groups,
            without=of_benchmark.missing_groups,
            left_out=of_benchmark.left_out,
            notes=[
                *of_benchmark.repetitions(outputs),
                *run_notes(
                    {f"{part[1]}/{part[0]}": _notes(of.arrays, part[0]) for part, of in outputs.items()}
                ),
            ],
            progress=progress,
        )
    refuse_options(
        "custom sets",
        groups=groups,
        allow_missing=allow_missing or None,
        mapping=mapping,
        background=background,
        restrict=None if restrict == "columns" else restrict,
    )
    name = name or "own-sets"
    custom_sets, data = {}, {}
    for set_name, arrays in sets.items():
        custom_sets[set_name], data[set_name] = _checked_set(set_name, arrays)
    widths = {
        key: {arrays[key].shape[1] for arrays in data.values() if key in arrays}
        for key in ("logits", "features")
    }
    for key, of_key in widths.items():
        if len(of_key) > 1:
            raise DataError(f"{key} of {' and '.join(map(str, sorted(of_key)))} columns", where=name)
    columns = next(iter(widths["logits"]), None)
    if classes is not None and columns not in (None, classes):
        raise DataError(f"logits of {columns} columns for {classes} classes", where=name)
    for kind in widths:
        held = [set_name for set_name, arrays in data.items() if kind in arrays]
        digests = {set_name: _digests([np.asarray(data[set_name][kind])]) for set_name in held}
        refuse_equal_sets(digests, {set_name: custom_sets[set_name].role for set_name in held}, "row")
    manifest = manifest_of_sets(
        list(custom_sets.values()), name=name, classes=columns if classes is None else classes
    )
    linear_head = _checked_head(head, data)
    outputs = {
        custom_set.part: GroupOutputs(manifest.parts[custom_set.part](), data[set_name], head=linear_head)
        for set_name, custom_set in custom_sets.items()
    }
    key = _model_key(custom_sets.values(), linear_head)
    run = ModelRun.of(model or MODEL_NAME, outputs, model_key=key, name=MODEL_NAME, user_named=bool(model))
    return evaluate_runs(
        manifest,
        [run],
        detectors,
        options=options,
        sweep=sweep,
        custom_sets=list(sets),
        notes=[
            *custom_set_notes(custom_sets, "row"),
            *rounding_notes(custom_sets, data),
            *run_notes({name: _notes(data[name], of.split) for name, of in custom_sets.items()}),
        ],
        progress=progress,
    )


def _model_key(sets: Iterable[CustomSet], head: Head | None) -> str:
    """Return the key of the model whose outputs are given: the SHA-256 of all outputs."""
    state = hashlib.sha256()
    for custom_set in sets:
        state.update("\x1f".join([*custom_set.part, *custom_set.digests, ""]).encode())
    for array in () if head is None else (head.weight, head.bias):
        state.update(array.tobytes())
    return state.hexdigest()


def _checked_head(pair: Any, sets: Mapping[str, Mapping[str, Any]]) -> Head | None:
    """Return the head of the given weights and biases, which gives the logits of every set.

    Raises
    ------
    DataError : not real numbers (K, D) and (K,), or features @ weights.T + biases are other logits.
    """
    if pair is None:
        return None
    if not isinstance(pair, list | tuple) or len(pair) != 2:
        raise DataError("must be a pair of weights (K, D) and biases (K,)", where="head")
    weight, bias = pair
    weights, biases = _matrix(weight, "weights", "head"), _numpy(bias, "head")
    if biases.shape != weights.shape[:1]:
        raise DataError(f"biases of shape {biases.shape} for {len(weights)} rows of weights", where="head")
    head = Head(weights, _matrix(biases[:, None], "biases", "head")[:, 0].astype(np.float32))
    for set_name, arrays in sets.items():
        features, logits = (arrays.get(key) for key in ("features", "logits"))
        for values, key, axis in ((features, "features", 1), (logits, "logits", 0)):
            if values is not None and values.shape[1] != weights.shape[axis]:
                raise DataError(
                    f"weights of shape {weights.shape} for {key} of {values.shape[1]} columns, of {set_name}",
                    where="head",
                )
        if features is not None and logits is not None and not gives_logits(head, features, logits):
            raise DataError(
                f"features @ weights.T + biases are not the logits of {set_name}",
                where="head",
                hint="give the last layer of this model: a row for each column of the logits, in their order",
            )
    return head


def _numpy(values: Any, where: str) -> Array:
    """Return an array or a tensor as a numpy array; bfloat16, which numpy lacks, as float32."""
    array = to_numpy(values, where=where)
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else array


def refuse_options(owner: str, **options: Any) -> None:
    """Raise DataError for an option that is given and does not apply."""
    for name, value in options.items():
        if value is not None:
            raise DataError(f"{name} does not apply to {owner}", where="evaluate_arrays")


def with_ids(sets: Mapping[str, Any], ids: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return sets with the ids that were given separately from their arrays."""
    merged = dict(sets)
    for set_name, of_set in ids.items():
        if not isinstance(merged.get(set_name), Mapping):
            raise unknown("set", str(set_name), map(str, sets), where="ids")
        if "ids" in merged[set_name]:
            raise DataError("its ids are given twice: among its arrays, and in ids", where=set_name)
        merged[set_name] = {**merged[set_name], "ids": of_set}
    return merged


def checked_arrays(name: str, values: Any) -> tuple[dict[str, Array], dict[str, Any]]:
    """Return the matrices of a set, checked, and its labels and ids as they were given (None if absent)."""
    if not isinstance(values, Mapping):
        message = f"{type(values).__name__} is given in place of its arrays by name"
        raise DataError(message, where=name, hint='as in {"logits": ..., "labels": ...}')
    for key in values:
        if key not in ARRAYS:
            raise unknown("array", str(key), ARRAYS, where=name)
    arrays = {key: _matrix(values[key], key, name) for key in ("features", "logits") if key in values}
    if not arrays:
        raise DataError("neither logits nor features are given", where=name)
    lengths = {key: len(array) for key, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise DataError(f"arrays differ in rows: {lengths}", where=name)
    n = next(iter(lengths.values()))
    if not n:
        raise DataError("there are no images", where=name)
    labels, ids = values.get("labels"), values.get("ids")
    return arrays, {
        "labels": None if labels is None else checked_labels(labels, n, role="", where=name),
        "ids": None if ids is None else _ids(ids, n, name),
    }


def _checked_set(name: str, values: Any) -> tuple[CustomSet, Arrays]:
    """Return a set and its arrays, checked; arrays of test images have no labels."""
    role, group, split = parse_set_name(name)
    arrays, row_facts = checked_arrays(name, values)
    n = len(next(iter(arrays.values())))
    unlabelled = row_facts["labels"] is None and split == "test"  # accuracy is left out
    labels = checked_labels(row_facts["labels"], n, role="" if unlabelled else role, where=name)
    if split != "test":
        arrays["labels"] = labels if role in ("id", "csid") else np.full(n, -1, np.int64)
    digests = _digests([array for array in arrays.values() if array.ndim > 1])
    ids = row_facts["ids"] or list(map(content_id, range(n), digests))
    return CustomSet(role, group, split, labels, ids, digests), Arrays(arrays)


def _notes(arrays: Arrays, split: str) -> list[str]:
    notes = list(logit_notes(np.asarray(arrays["logits"]))) if "logits" in arrays else []
    columns = {name: np.asarray(arrays[name]) for name in arrays if split == "test"}
    matrices = {name: values for name, values in columns.items() if values.ndim == 2}
    return [*notes, *(STANDARDISED.format(name=name) for name in matrices if is_standardised(matrices[name]))]


def _digests(arrays: Sequence[Array]) -> list[str]:
    """Return the digest of every row of some arrays."""
    return [digest_of(*(row.tobytes() for row in rows)) for rows in zip(*arrays, strict=True)]


def _ids(values: Any, n: int, where: str) -> list[str]:
    """Return the ids of n images."""
    items = list(values) if isinstance(values, list | tuple | range) else _numpy(values, where).tolist()
    if not isinstance(items, list) or not all(isinstance(item, str | int | np.integer) for item in items):
        raise DataError("ids are not texts or whole numbers", where=where)
    ids = [str(item) for item in items]
    if len(ids) != n:
        raise DataError(f"{len(ids):,} ids for {n:,} images", where=where)
    if len(set(ids)) != n:
        repeated = next(image_id for image_id, count in Counter(ids).items() if count > 1)
        message = f"{n - len(set(ids)):,} ids repeat others, such as {printable(repeated)!r}"
        raise DataError(message, where=where, hint="give each image one row")
    for image_id in ids:
        if not image_id or len(image_id) > MAX_ID_LENGTH or not image_id.isprintable():
            raise DataError(f"{printable(image_id)!r} is not a name of an image", where=where)
    return ids


def _matrix(values: Any, key: str, where: str) -> Array:
    """Return a finite (n, width) float32 or float16 array; different values stay different."""
    array = _numpy(values, where)
    if array.ndim != 2 or not array.shape[1] or array.dtype.kind not in "fiu":
        raise DataError(
            f"{key} of shape {array.shape} and type {array.dtype}; an (n, width) array is expected",
            where=where,
        )
    array = as_float32(array, name=key, where=where, by_column=key == "features")
    if not np.isfinite(array).all():
        raise DataError(f"{key} hold NaN or infinity", where=where)
    if key == "logits":
        refuse_probabilities(array, where=where, hint="give what goes into the softmax")
    return array
