"""A fitted detector with its network, transform and threshold: it scores images, and is written and read."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from PIL import Image

from wordnet_splits.base.errors import DataError, SplitsError, UnsafeDataError
from wordnet_splits.base.untrusted import (
    USER_CODE_ERRORS,
    describe_error,
    require_trusted_name,
)
from wordnet_splits.benchmark.images.raw_images import RAW_VIEW, spec_id
from wordnet_splits.metrics.conformal import BatchGuarantee, ConformalGuarantee, p_values

from ..data.arrays import Array
from ..data.parameters import format_named, parse_named
from ..detectors.parsing import resolve_detectors
from ..detectors.registry import ConfiguredDetector, configure
from ..evaluation.scoring import Fitted, confidence
from ..extraction.batch_size import propose_batch_size
from ..extraction.extractor import Extractor
from ..extraction.forward import refuse_unscaled
from ..models.loading import load_model, names_code
from ..models.model import Model
from ..models.transforms import (
    Normalise,
    Transform,
    as_image,
    as_transform,
    evaluation_transform,
    named_transform,
)
from .detector_folder import (
    AGAIN,
    CALIBRATION,
    Description,
    Examples,
    pack_state,
    read_folder,
    unpack_state,
    write_folder,
)

FIRST_BATCH = 8
"""Images of the first batch, with which a batch size is proposed."""


class ImageScore(NamedTuple):
    """The score of an image.

    Attributes
    ----------
    confidence : of the detector, higher = more in-distribution.
    p_value : share of ID images of lower or equal confidence, by split conformal prediction, in (0, 1].
    in_distribution : whether the confidence reaches the threshold.
    """

    confidence: float
    p_value: float
    in_distribution: bool


class BatchScore(NamedTuple):
    """`ImageScore` with the least false-discovery rate that flags the image, and whether ``fdr`` does."""

    confidence: float
    p_value: float
    in_distribution: bool
    adjusted_p: float
    outlier: bool


@dataclass(frozen=True, eq=False, repr=False)
class ShippedDetector:
    """A fitted detector that scores images: ``detector(image)``.

    Attributes
    ----------
    description : everything but arrays and network, as stored in ``detector.json``.
    model : the network.
    fitted : the detector and its state.
    transform : of an image.
    calibration : (n,) float32 confidences of the calibration images, ascending.
    examples : a sample of the calibration images.
    """

    description: Description
    model: Model
    fitted: Fitted
    transform: Transform
    calibration: Array
    examples: Examples

    @property
    def guarantee(self) -> ConformalGuarantee:
        """The guarantee of the threshold: requested rate, calibration images, intervals."""
        calibration = self.description.calibration
        return ConformalGuarantee(calibration.requested, calibration.images, calibration.rank)

    @property
    def threshold(self) -> float:
        """The least confidence of images that count as in-distribution."""
        return self.description.calibration.threshold

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on conditions that weaken the guarantee."""
        return tuple(self.description.notes)

    def __repr__(self) -> str:
        name, guarantee = self.description.network.name, self.guarantee
        return (
            f"ShippedDetector({self.description.detector} on {name}: {guarantee.false_alarms:.2%} false "
            f"alarms at most, calibrated on {guarantee.images:,} images of {self.description.benchmark.name})"
        )

    def __call__(self, image: Any) -> ImageScore:
        """Return the score of an image: a PIL image, a path, or uint8 pixels (h, w, 3) or (h, w).

        Raises
        ------
        SplitsError : it is not an image, or the network cannot take it.
        """
        (score,) = self.stream([image])
        if isinstance(score, SplitsError):
            raise score
        return score

    def score(
        self,
        images: Iterable[Any],
        *,
        batch_size: int | None = None,
        fdr: float | None = None,
        dependent: bool = False,
    ) -> list[ImageScore | BatchScore | SplitsError]:
        """Return the score of each image, in order, or the error of an image that cannot be scored.

        Parameters
        ----------
        batch_size : of the forward passes; by default proposed for the network and its inputs.
        fdr : greatest acceptable share of ID images among the images flagged in this batch: scores are
            `BatchScore`; see `wordnet_splits.metrics.conformal.BatchGuarantee`.
        dependent : with ``fdr``, whether the images may depend on each other, as a video's frames do.

        Raises
        ------
        DataError : a rate out of range, or too small for the number of calibration images.
        """
        guarantee = self.batch_guarantee(fdr, dependent)
        return in_batch(list(self.stream(images, batch_size=batch_size)), guarantee)

    def batch_guarantee(self, fdr: float | None, dependent: bool = False) -> BatchGuarantee | None:
        """Return the guarantee of a batch, None without ``fdr``; see `score`."""
        if fdr is None and dependent:
            raise DataError("only applies with a false-discovery rate", where="dependent", hint="give fdr")
        return None if fdr is None else BatchGuarantee(fdr, self.guarantee.images, dependent)

    def stream(
        self, images: Iterable[Any], *, batch_size: int | None = None
    ) -> Iterator[ImageScore | SplitsError]:
        """Yield what `score` returns, batch by batch."""
        prepared = map(self._prepared, images)
        while batch := list(islice(prepared, batch_size or FIRST_BATCH)):
            inputs = [tensor for tensor in batch if not isinstance(tensor, SplitsError)]
            if batch_size is None and inputs and len(batch) == FIRST_BATCH:
                with self.model.evaluating(self.transform):
                    x = inputs[0][None].to(self.model.device, self.model.dtype)
                    batch_size = propose_batch_size(self.model, x)
            yield from self._score_batch(batch)

    def write(self, folder: str | Path, *, overwrite: bool = False) -> tuple[Path, ...]:
        """Write the detector as a folder of JSON and safetensors, and return its files.

        Raises
        ------
        OutputError : the folder cannot be written, or holds a detector (not with ``overwrite``).
        """
        implementation = self.fitted.configured.spec.implementation
        tree, arrays = pack_state(self.fitted.state, implementation)
        description = self.description.model_copy(update={"state": tree})
        arrays |= {CALIBRATION: self.calibration, **self.examples.stored()}
        return write_folder(Path(folder), description, arrays, overwrite=overwrite)

    def _prepared(self, image: Any) -> torch.Tensor | SplitsError:
        """Return an image as the network's input (3, h, w), or its error."""
        try:
            decoded = as_image(image)
            if self.description.view != RAW_VIEW:
                from fix_resize import resize, spec

                decoded = Image.fromarray(resize.apply(spec.get_spec(self.description.view), decoded))
            tensor = self.transform(decoded)
            refuse_unscaled(tensor, "transform")
            return tensor
        except SplitsError as error:
            return error
        except USER_CODE_ERRORS as error:  # of the user's transform
            where = str(image) if isinstance(image, str | Path) else None
            return DataError(f"the transform failed: {describe_error(error)}", where=where)

    def _score_batch(
        self, inputs: Sequence[torch.Tensor | SplitsError]
    ) -> Iterator[ImageScore | SplitsError]:
        """Yield the scores of a batch; images of equal size are computed together."""
        by_shape: dict[Any, list[int]] = {}
        for index, tensor in enumerate(inputs):
            if not isinstance(tensor, SplitsError):
                by_shape.setdefault(tuple(tensor.shape), []).append(index)
        outcomes: dict[int, ImageScore | SplitsError] = {}
        pending = list(by_shape.values())
        for indices in pending:
            try:
                outcomes.update(zip(indices, self._scores([inputs[i] for i in indices]), strict=True))
            except SplitsError as error:
                if len(indices) == 1:
                    outcomes[indices[0]] = error
                else:  # one by one, to find the images that fail
                    pending += [[i] for i in indices]
        for index, tensor in enumerate(inputs):
            yield tensor if isinstance(tensor, SplitsError) else outcomes[index]

    def _scores(self, tensors: Sequence[Any]) -> list[ImageScore]:
        """Return the scores of transformed images of equal size."""
        confidences = self.confidences(torch.stack(list(tensors)))
        values = p_values(self.calibration, confidences)
        return [
            ImageScore(float(c), float(p), bool(c >= self.threshold))
            for c, p in zip(confidences, values, strict=True)
        ]

    def confidences(self, images: torch.Tensor) -> Array:
        """Return the confidence (n,), float32, of transformed images (n, 3, h, w)."""
        digests = [hashlib.sha256(image.numpy().tobytes()).hexdigest() for image in images.cpu()]
        names = [("scored", digest, "raw") for digest in digests]
        needs = frozenset({*self.fitted.configured.needs, *self.fitted.probes})
        data = self._extractor.single_images(images, names, self.transform, needs)
        return np.asarray(confidence(self.fitted, data), dtype=np.float32)

    @cached_property
    def _extractor(self) -> Extractor:
        return Extractor(self.model, columns=self.description.columns.class_map)


def in_batch(
    scores: Sequence[ImageScore | SplitsError], guarantee: BatchGuarantee | None
) -> list[ImageScore | BatchScore | SplitsError]:
    """Return the scores of a batch with adjusted p-values, if asked; images without a score do not count."""
    if guarantee is None:
        return [*scores]
    values = np.array([score.p_value for score in scores if not isinstance(score, SplitsError)])
    guarantee.least(len(values))
    adjusted = guarantee.adjusted(values)
    judged = iter(zip(adjusted.tolist(), guarantee.flags(adjusted).tolist(), strict=True))
    return [
        score if isinstance(score, SplitsError) else BatchScore(*score, *next(judged)) for score in scores
    ]


def load_detector(
    folder: str | Path,
    model: Any = None,
    *,
    detector: Any = None,
    transform: Any = None,
    transform_id: str | None = None,
    **loading: Any,
) -> ShippedDetector:
    """Read a detector that `export_detector` wrote.

    Parameters
    ----------
    model : the network, as `load_model` takes it; by default the network named in the folder.
    detector : class or function of a detector that is not registered.
    transform : of a PIL image, or its name, in place of the stored transform; warns if the two differ.
    transform_id : name of a transform that is a function.
    loading : options of `load_model`: ``device``, ``weights``, ``head``, ``model_id``, ``trust_model``, ...

    Raises
    ------
    DataError : the folder is damaged, the network differs from the exported network, or its transform is a
        function that was not given.
    """
    folder = Path(folder)
    description, arrays = read_folder(folder)
    where, trusted = str(folder), bool(loading.get("trust_model"))
    configured = _configured(description, detector, trusted=trusted, where=where)
    opened = open_network(description.network.spec, description.network.weights, model, loading, where=where)
    if opened.key != description.network.key:
        raise DataError(
            f"{opened.name} is another network than the detector's {description.network.name}: "
            f"fingerprint {opened.key[:12]}, not {description.network.key[:12]}",
            where=where,
            hint="give the same architecture and weights, or export the detector for this network",
        )
    calibration, examples = arrays.pop(CALIBRATION), Examples.take_from(arrays, where=where)
    classes = len(description.columns.class_map.class_columns)
    state = unpack_state(
        description.state, arrays, configured.spec.implementation, classes=classes, where=where
    )
    fitted = Fitted(configured, configured.detector, state)
    examples.check(fitted, calibration, where=where, hint=AGAIN)
    try:
        spec_id(description.view)
    except SplitsError as error:
        raise error.within(where) from error
    used = _transform(description, opened, transform, transform_id, where)
    return ShippedDetector(description, opened, fitted, used, calibration, examples)


def open_network(spec: str, weights: str, model: Any, loading: dict[str, Any], *, where: str) -> Model:
    """Return the given network, or load a network from a stored specification."""
    if model is not None:
        return model if isinstance(model, Model) else load_model(model, **loading)
    hint = "give it as model= (--model)"
    if not spec:
        raise DataError("its network was given in Python and is no longer in memory", where=where, hint=hint)
    if names_code(spec):
        require_trusted_name(spec, trusted=bool(loading.get("trust_model")), where=where)
    try:
        return load_model(spec, **{**({"weights": weights} if weights else {}), **loading})
    except UnsafeDataError:
        raise
    except SplitsError as error:
        message = f"its network {spec} cannot be loaded: {error.what}"
        hint = f"{error.hint}; or {hint}" if error.hint else hint
        raise DataError(message, where=where, hint=hint) from error


def _configured(description: Description, detector: Any, *, trusted: bool, where: str) -> ConfiguredDetector:
    """Return the detector with the stored parameters."""
    if detector is None and ":" in description.name:
        require_trusted_name(description.name, trusted=trusted, where=where)
    try:
        configured, *others = resolve_detectors([description.name if detector is None else detector], "")
    except SplitsError as error:
        hint = f"register it before loading, or give it as detector= (--detector MODULE:{description.name})"
        raise DataError(error.what, where=where, hint=hint) from error
    if others or configured.spec.name != description.name:
        raise DataError(f"holds the detector {description.name}, not {configured.spec.name}", where=where)
    params, spec = description.params, configured.spec
    try:
        chosen = configure(spec, params, label=description.name).params
        name, written = parse_named(description.detector)
        labelled = configure(spec, written, label=name)
    except SplitsError as error:
        message = f"invalid parameters of {description.name}: {error.what}"
        raise DataError(message, where=where, hint=AGAIN) from error
    told = written if description.chosen_on else spec.parameters  # a sweep chose all other parameters
    pairs = [format_named(name, {key: of[key] for key in told}) for of in (chosen, labelled.params)]
    if set(params) != set(spec.parameters) or (name in spec.names and pairs[0] != pairs[1]):
        message = f"its parameters must be those of {description.detector}, got {pairs[0]}"
        raise DataError(message, where=where, hint=AGAIN)
    return replace(configured, label=description.detector, params=chosen, chosen_on=description.chosen_on)


def _transform(
    description: Description, model: Model, transform: Any, transform_id: str | None, where: str
) -> Transform:
    """Return the transform of images: the given one, the stored one, or the model's own."""
    stored = description.transform
    if isinstance(transform, str):
        transform = named_transform(model, transform, stored.spec)
    if transform is not None:
        used = as_transform(transform, transform_id=transform_id or "as given in this call")
        if used.key != stored.key:
            warnings.warn(
                f"the calibration used another transform ({stored.words}): confidences differ, and the "
                "rate of false alarms is not guaranteed",
                stacklevel=3,
            )
        return used
    if set(stored.spec) == {"evaluation", "mean", "std"}:
        try:
            normalise = Normalise.of_options(stored.spec["mean"], stored.spec["std"]) or Normalise()
            used = evaluation_transform(str(stored.spec["evaluation"]), normalise.mean, normalise.std)
        except SplitsError as error:
            raise error.within(where) from error
        if used.key == stored.key:
            return used
    if model.preprocess is not None and model.preprocess.key == stored.key:
        return model.preprocess
    raise DataError(
        f"cannot make its transform from the description: {stored.words}",
        where=where,
        hint="give the function, as transform= with its transform_id= (--transform MODULE:NAME)",
    )
