"""The interface to every classifier: features and logits of a batch, its key, and its preprocessing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import torch
from torch import Tensor
from torch.nn.parameter import UninitializedParameter

from wordnet_splits.base.errors import DataError, UnusableError
from wordnet_splits.base.untrusted import USER_CODE_ERRORS, user_errors

from ..data.array_checks import gives_logits, logit_notes
from ..data.arrays import NEEDS_HEAD, Head, array_of
from .class_map import ClassMap, ClassMapping, LabelSpace, class_map
from .head import HookedNetwork, check_logits, refuse_complex
from .hooks import STAGES, capture_outputs, find_stages
from .origin import IN_PYTHON
from .reproducibility import content_stamp, is_quantised, model_key
from .sources.first_batch import DeadlineError, compute_within
from .sources.registry import LoadedModel
from .transforms import Normalise, Transform

QUANTISED = "its weights are quantised to 8 bits or fewer: these are not the figures of the network in float"
CHECK_TRANSFORM = "check the transform: --transform resize-224 (transform='resize-224') gives 224 x 224"
ONE_CHANNEL = (
    "it accepts images of one channel, and these have three (equal for grey images): give a module whose "
    "forward is network(images[:, :1])"
)
ASSUMED_PIXELS = (
    "no normalisation of its inputs is stated: they are pixels in [0, 1]; give mean=0 and std=1 if this is "
    "right, or else its mean and std"
)
AUTOCAST = "torch.autocast is switched off while it computes: the type is that of its weights"


@dataclass(frozen=True)
class ClassChoice:
    """The user's choice of how a model's columns become labels, see `class_map.class_map`."""

    restrict: str = "columns"
    background: int | str | None = None
    mapping: ClassMapping | None = None


class Model:
    """A classifier on a device: ``model.forward(x)`` gives features (n, D) and logits (n, K), all columns.

    Attributes
    ----------
    name : source and name it was loaded from.
    series : name shared by runs that differ in the seed, or "".
    origin : origin of its weights, as `load_model` found them.
    key : SHA-256 over its tensors and architecture (and the head, where the user named it).
    identified : whether `key` means the same model in another process; false for a function without a name.
    module : the nn.Module, None for a function.
    device : device of the computation.
    dtype : type of its input.
    preprocess : its preprocessing, None where it has none.
    normalise : the normalisation that the user gave for it, None for the benchmark's.
    own_normalise : the normalisation that the model states, None where it states none.
    in_python : whether it is an object given in Python, not a file or a name.
    classes : its class names or wnids, one per column, None where unknown.
    choice : restriction, background column and mapping, applied by `class_map`, never to stored arrays.
    width : columns of its output, None before `prepare`.
    gives_features : whether it returns features too; known after `prepare`.
    std : standard deviation per channel of its input's normalisation while activations are extracted.
    words : the negative words given to a zero-shot classifier.
    notes : warnings about its outputs, as sentences; known after `prepare`.
    """

    def __repr__(self) -> str:
        return f"Model({self.name} on {self.device})"

    def __init__(self, loaded: LoadedModel, *, device: Any, head: str | None, choice: ClassChoice) -> None:
        self.name, self.series = loaded.name, loaded.series
        self.identified, self.own_normalise = loaded.identified, loaded.normalise
        self.in_python = False
        self.normalise: Normalise | None = None
        self.preprocess, self.choice = loaded.preprocess, choice
        self.classes, self.source_of_classes = loaded.classes, loaded.source_of_classes
        self._numbered = loaded.numbered
        self.origin = IN_PYTHON
        self.device = torch.device(device)
        self.std: tuple[float, ...] | None = None
        self.module, self._trial, self._deadline = loaded.module, loaded.trial, loaded.deadline
        self._refusal: DeadlineError | None = None
        self._shared: dict[Any, Any] = {}
        self._batch: Tensor | None = None
        self._stages: tuple[str, ...] | None = None
        self.width: int | None = None
        self.gives_features = True
        self._features_width: int | None = None
        self._has_gradients: bool | None = None
        self._head_differs = False
        self.words: tuple[str, ...] = getattr(loaded.module, "words", ())
        self.notes: tuple[str, ...] = loaded.notes
        if self.words:
            digest = sha256("\n".join(self.words).encode()).hexdigest()[:12]
            self.note(f"it was told {len(self.words):,} negative words (SHA-256 {digest})")
        if self.module is not None:
            if any(isinstance(p, UninitializedParameter) for p in self.module.parameters()):
                raise DataError(
                    "has parameters without values, as lazy layers before their first batch",
                    where=self.name,
                    hint="call the module on a batch of images first",
                )
            if any(tensor.is_meta for tensor in (*self.module.parameters(), *self.module.buffers())):
                raise DataError(
                    "has parameters without values, on the meta device",
                    where=self.name,
                    hint="load its weights (load_state_dict(..., assign=True)) first",
                )
            self.module.to(self.device)
            self.network: Any = loaded.network or HookedNetwork(self.module, head or loaded.head, self.name)
            head_line = "" if head is None else f"\nhead={head}"
            self._architecture = loaded.architecture + head_line
            tensors = self.module.state_dict()
            self.key, self._stamp = model_key(tensors, self._architecture), content_stamp(tensors)
            if any(map(is_quantised, tensors.values())):
                self.note(QUANTISED)
        else:
            self.network = loaded.network
            self.key = model_key({}, loaded.architecture)
        parameters = () if self.module is None else self.module.parameters()
        self.dtype = next((p.dtype for p in parameters if p.is_floating_point()), torch.float32)

    def forward(self, x: Tensor) -> tuple[Tensor | None, Tensor]:
        """Return features (n, D), or None, and logits (n, K) of a batch (n, 3, h, w).

        Gradients flow where enabled.
        """
        if self._deadline is None:
            features, logits = self.network(x)
        else:
            features, logits = self._compute_loops(x, self._deadline)
        return features, logits

    def _compute_loops(self, x: Tensor, seconds: float) -> Any:
        """Compute a batch of a program with loops; another process tries the first batch before."""
        if self._refusal is not None:
            raise self._refusal
        trial, self._trial = self._trial, None
        try:
            if trial is not None:
                trial(x)
            stop = getattr(self.network, "stop", None)
            return compute_within(seconds, lambda: self.network(x), where=self.name, stop=stop)
        except DeadlineError as error:
            self._refusal = error
            raise

    def prepare(self, x: Tensor) -> Tensor:
        """Find the head and `width` with a few inputs, and return their logits (n, K).

        Raises
        ------
        DataError : the model fails for these inputs, or returns no logits: another shape, NaN, probabilities.
        """
        problem = f"the model cannot take inputs of shape {tuple(x.shape)}"
        try:
            with torch.no_grad(), user_errors(problem, where=self.name, hint=CHECK_TRANSFORM):
                hooked = isinstance(self.network, HookedNetwork)
                features, logits = self.network.prepare(x) if hooked else self.forward(x)
        except DataError as error:
            if error.__cause__ is None or not self._takes_one_channel(x):
                raise
            raise DataError(error.what, where=self.name, hint=ONE_CHANNEL) from error.__cause__
        self.gives_features = features is not None
        self._features_width = None if features is None else int(features.shape[1])
        check_logits(logits, self.name)
        if features is not None:
            refuse_complex(features, "features", self.name)
            self._compare_head(features, logits)
        for note in logit_notes(array_of(logits)):
            self.note(note)
        self.width = int(logits.shape[1])
        return logits

    def _takes_one_channel(self, x: Tensor) -> bool:
        """Return whether its first convolution has one channel, or it accepts one channel of inputs ``x``."""
        if x.shape[1] == 1:
            return False
        modules = () if self.module is None else self.module.modules()
        channels = [part.in_channels for part in modules if hasattr(part, "in_channels")]
        if channels:
            return bool(channels[0] == 1)
        try:
            with torch.no_grad():
                (self.network if self.module is None else self.module)(x[:, :1])
        except USER_CODE_ERRORS:
            return False
        return True

    def _compare_head(self, features: Tensor, logits: Tensor) -> None:
        """Leave out the head, with a note, where features @ weight.T + bias are not the logits."""
        if self.head is not None and not gives_logits(self.head, array_of(features), array_of(logits)):
            self._head_differs = True
            self.note(
                f"features @ weight.T + bias of its head {self.head_name!r} are not its logits (a scale, a "
                "hook, a forward of its own?): detectors that need the head's weights are left out"
            )

    def note(self, text: str) -> None:
        """Add a sentence to `notes`."""
        self.notes = tuple(dict.fromkeys((*self.notes, text)))

    @property
    def head(self) -> Head | None:
        """The linear head over all columns; None if it does not give the logits, or before `prepare`."""
        return None if self._head_differs else getattr(self.network, "matrix", None)

    @property
    def head_name(self) -> str | None:
        """The head's name within the module; None for a function, or before the first forward pass."""
        return getattr(self.network, "head_name", None)

    def class_map(self, space: LabelSpace, width: int) -> ClassMap:
        """Match the columns of its output with a benchmark's labels: see `class_map.class_map`.

        Raises
        ------
        DataError : they do not match; or the first of two outputs has as many columns as there are labels.
        """
        if self._features_width == len(space.labels) != width and self.head_name is None:
            raise DataError(
                f"the first of its two outputs has {self._features_width} columns, one for each label",
                where=self.name,
                hint="return (features, logits), in this order",
            )
        mapping, classes = self.choice.mapping, self.classes
        if self._numbered and not space.has_numbers:
            classes = None
        published = self.source_of_classes
        if mapping is None and classes is None and published and space.is_covered_by(published):
            mapping = published
        return class_map(
            space,
            width,
            classes=classes,
            mapping=mapping,
            restrict=self.choice.restrict,
            background=self.choice.background,
            where=self.name,
        )

    def layers(self, x: Tensor, names: Sequence[str]) -> dict[str, Tensor]:
        """Return the outputs of named layers for a batch.

        During extraction they come from the shared forward pass; otherwise this runs a forward pass.
        """
        layers = self.layer_names(x, names)
        if x is self._batch and all(("layer", name) in self._shared for name in layers):
            return {name: self._shared["layer", name] for name in layers}
        with self.batch(x, layers):
            return {name: self._shared["layer", name] for name in layers}

    def layer_names(self, x: Tensor, names: Sequence[str]) -> tuple[str, ...]:
        """Return names of layers, with ``stages`` replaced by the network's stages (see `stages`)."""
        stages = self.stages(x) if STAGES in names else ()
        if STAGES in names and not stages:
            raise DataError("there is no layer before the head", where=self.name)
        expanded = (stages if name == STAGES else (name,) for name in names)
        return tuple(dict.fromkeys(name for layers in expanded for name in layers))

    def stages(self, x: Tensor) -> tuple[str, ...]:
        """Return the names of the network's stages, found by one forward pass of two images of ``x``."""
        if self._stages is None:
            self._stages = find_stages(self.require_module(), x[:2], self.head_name)
        return self._stages

    @property
    def has_layers(self) -> bool:
        """Whether it has layers that can be hooked, which functions and programs do not."""
        return isinstance(self.network, HookedNetwork)

    def require_module(self) -> Any:
        """Return the module."""
        if not self.has_layers:
            raise DataError("a function or program has no layers to name", where=self.name)
        return self.module

    def has_gradients(self, x: Tensor) -> bool:
        """Return whether its logits have gradients with respect to images ``x``.

        A forward pass tests functions and programs; modules have gradients.
        """
        if self._has_gradients is None and self.has_layers:
            self._has_gradients = True
        if self._has_gradients is None:
            try:
                with torch.enable_grad():
                    logits = self.forward(x.detach().clone().requires_grad_(True))[1]
                self._has_gradients = logits.requires_grad
            except USER_CODE_ERRORS:  # e.g. NumPy rejects a tensor with gradients
                self._has_gradients = False
        return self._has_gradients

    def shared(self, x: Tensor, key: Any, compute: Callable[[], Any]) -> Any:
        """Return ``compute()``, computed once per extracted batch, for results that several probes share."""
        if x is not self._batch:
            return compute()
        if key not in self._shared:
            self._shared[key] = compute()
        return self._shared[key]

    def require(self, needs: Iterable[Any]) -> None:
        """Check that its forward pass gives arrays and the head; known after `prepare`.

        Raises
        ------
        UnusableError : it lacks features, or a linear head that reproduces its logits.
        """
        if "features" in needs and not self.gives_features:
            named = " (no linear layer gives them; name the head: head='NAME')" if self.has_layers else ""
            raise UnusableError(f"needs features, and this model gives logits alone{named}", where=self.name)
        if "head" in needs and self._head_differs:
            message = "needs the weights of a linear head, and this model's head does not give its logits"
            raise UnusableError(message, where=self.name)
        if "head" in needs and self.head is None:
            raise UnusableError(NEEDS_HEAD, where=self.name)

    @contextmanager
    def batch(
        self, x: Tensor, layers: Sequence[str] = (), *, skip: bool = False
    ) -> Iterator[tuple[Tensor | None, Tensor] | None]:
        """Yield features and logits of a batch; outputs of ``layers`` are kept for probes inside the block.

        ``skip``: yield None, without a forward pass.
        """
        outer = self._batch, self._shared
        self._batch, self._shared = x, {}
        try:
            with torch.no_grad():
                outputs = None if skip else self._forward_with_layers(x, layers)
            yield outputs
        finally:
            self._batch, self._shared = outer

    def _forward_with_layers(self, x: Tensor, layers: Sequence[str]) -> tuple[Tensor | None, Tensor]:
        if not layers:
            return self.forward(x)
        names = self.layer_names(x, layers)
        with capture_outputs(self.require_module(), names, copy=True) as captured_outputs:
            outputs = self.forward(x)
        for name in names:
            if name not in captured_outputs:
                raise DataError(f"layer {name!r} was not called in the forward pass", where=self.name)
            self._shared["layer", name] = captured_outputs[name]
        return outputs

    def check_unchanged(self) -> None:
        """Raise DataError if the weights were changed since the model, and with it its key, was made."""
        if self.module is None:
            return
        tensors = self.module.state_dict()
        stamp = content_stamp(tensors)
        if stamp != self._stamp and model_key(tensors, self._architecture) != self.key:
            raise DataError(
                "its weights were changed since it was loaded",
                where=self.name,
                hint="load it again, with the weights that it is to have",
            )
        self._stamp = stamp

    @contextmanager
    def evaluating(self, transform: Transform) -> Iterator[None]:
        """Put the module in evaluation mode, and restore its flags afterwards.

        The caller's ``torch.autocast`` is switched off, so that the recorded type is the computation's.
        """
        self.check_unchanged()
        modules = [] if self.module is None else list(self.module.modules())
        flags = [part.training for part in modules]
        for part in modules:
            part.training = False
        self.std = transform.std
        self.notes = tuple(note for note in self.notes if note not in (AUTOCAST, ASSUMED_PIXELS))
        if transform.assumed:
            self.note(ASSUMED_PIXELS)
        unit = torch.ones(1, 1, device=self.device)
        if (unit @ unit).dtype != unit.dtype:
            self.note(AUTOCAST)
        try:
            with torch.autocast(self.device.type, enabled=False):
                yield
        finally:
            self.std = None
            for part, flag in zip(modules, flags, strict=True):
                part.training = flag
