"""The interface of a training method: a dataclass whose fields are its parameters, with a `step`.

::

    @register_method("logitnorm")
    @dataclass(frozen=True)
    class LogitNorm(Method):
        "Cross-entropy of logits of norm 1 / tau."

        tau: float = 0.04

        def step(self, model, batch, state):
            logits = functional.normalize(model.logits(batch.images), dim=1) / self.tau
            return {"cross_entropy": functional.cross_entropy(logits, batch.labels, reduction="none")}

All methods except `step` have a default.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from torch import Generator, Tensor, nn

from ...data.parameters import parameters
from ...models.transforms import Normalise

if TYPE_CHECKING:
    from .network import Network

OutlierUse = Literal["none", "mixed", "beside"]
Formula = Literal["paper", "code"]
"""Source of a loss if the formula of the paper differs from the authors' code."""
View = Callable[[Tensor, Any], Tensor]
"""(images uint8 (n, 3, h, w), CPU generator) -> images of the same shape on the same device.

Random numbers are drawn from the generator on the CPU, so that views do not depend on the device.
"""
OUTLIER = -1
"""Label of an outlier (a negative)."""
BACKBONE, HEAD = "backbone", "head"
"""Parameter groups of every network: the layers below the classifier, and the classifier."""


@dataclass(frozen=True)
class Part:
    """A named part of a method's loss, and the claims about it that `audit_method` verifies.

    Attributes
    ----------
    reaches : the parameter groups that get its gradient: ``backbone``, ``head`` (the classifier) and names of
        `Method.heads`. All others must get none.
    depends : inputs that an image's value depends on: the ``image`` alone (and its position, for random
        numbers); all images of the ``batch``, as in contrastive losses; or also their ``order``, as in moving
        averages.
    """

    reaches: tuple[str, ...] = (BACKBONE, HEAD)
    depends: Literal["image", "batch", "order"] = "image"


def declare(**parts: Part) -> Mapping[str, Part]:
    """Return the parts of a loss by name, for `Method.parts`."""
    return MappingProxyType(parts)


class Term(NamedTuple):
    """A part of the loss with its weight: the loss has ``weight * values.mean()``.

    Attributes
    ----------
    values : one value per image, (m,): of ID images, outliers, anchors or views, in their order. Parts that
        depend on the batch may have any number, or one.
    weight : factor in the loss, a number or a learned tensor. ``values`` follow the paper's formula without
        this factor.
    """

    values: Tensor
    weight: float | Tensor = 1.0


Terms = Mapping[str, Term | Tensor]
"""Name of a part -> its values; a tensor alone has weight 1."""


@dataclass(frozen=True)
class Batch:
    """The images of a step, on the device.

    Attributes
    ----------
    views : one tensor of normalised images (n, 3, h, w) for each of `Method.views`, of the same images.
    labels : (n,) int64 in 0..K-1, -1 for outliers.
    index : (n,) int64, position of each ID image in the training images: the same image has the same index in
        every epoch. Outliers follow, from the number of ID images on.
    """

    views: tuple[Tensor, ...]
    labels: Tensor
    index: Tensor

    @property
    def images(self) -> Tensor:
        """The first view (n, 3, h, w)."""
        return self.views[0]

    @property
    def known(self) -> Tensor:
        """Mask (n,) of the ID images; all other images are outliers."""
        return self.labels != OUTLIER

    def __len__(self) -> int:
        return len(self.labels)


class State(dict[str, Any]):
    """State of a method between steps, by name: tensors and plain values, saved with the checkpoint.

    ``state["queue"] = torch.zeros(...)`` in `Method.setup`; tensors are moved to the device on resuming.

    Attributes
    ----------
    epoch, epochs : epoch, counted from 0, and number of epochs.
    generator : CPU generator of the method's random numbers, seeded by seed and epoch.
    """

    epoch: int = 0
    epochs: int = 1
    generator: Generator


@dataclass(frozen=True)
class Data:
    """The training data as a method sees it in `setup` and `after_epoch`.

    Attributes
    ----------
    labels : (N,) labels of the ID images, in the order of `Batch.index`, on the device.
    n_outliers : number of outliers.
    classes : names of the ID classes in label order.
    extract : () -> features (N, D) and logits (N, K) of the ID images in evaluation mode, unaugmented;
        ``extract(True)`` returns the outliers' features and logits.
    manifest : the benchmark, None for images without one.
    normalise : the normalisation of `Batch.views`.
    """

    labels: Tensor
    n_outliers: int
    classes: tuple[str, ...]
    extract: Callable[..., tuple[Tensor, Tensor]]
    manifest: Any = None
    normalise: Normalise = field(default_factory=Normalise)


@parameters
class Method(ABC):
    """Base of the training methods; a subclass must define only `step`.

    Attributes
    ----------
    parts : name -> `Part` of every part that `step` may return; they are columns of the history.
    outliers : ``none``; ``mixed``: shuffled among the ID images; ``beside``: a batch of outliers follows the
        ID images of each batch (``negatives_per_known`` of the recipe is the ratio).
    background : whether the network has an additional output, the last, for outliers.
    outputs : names of the confidences that `confidences` returns.
    revision : raised by 1 when the loss or a default changes; runs of another revision are not continued.
    """

    name: ClassVar[str] = ""
    parts: ClassVar[Mapping[str, Part]] = declare(cross_entropy=Part())
    outliers: ClassVar[OutlierUse] = "none"
    background: ClassVar[bool] = False
    outputs: ClassVar[tuple[str, ...]] = ()
    revision: ClassVar[int] = 1

    def facts(self, data: Data) -> dict[str, Any]:
        """Return JSON values that `heads` needs and that depend on the data (MOS's groups).

        They are stored in ``model.json`` and are ``model.facts`` everywhere else. ``data.extract`` is not
        available yet.
        """
        return {}

    def heads(self, model: Network, classes: int) -> Mapping[str, nn.Module]:
        """Return new heads by name; their weights are drawn from torch's global generator.

        They are ``model.heads[name]`` in `step`, and saved with the network. One called ``head`` replaces
        the classifier: it takes features (n, ``model.width``) and returns the logits (n, K) that evaluation
        uses.
        """
        return {}

    def views(self, augment: View) -> Sequence[View]:
        """Return the transforms of the views of each image; ``augment`` is the recipe's augmentation."""
        return (augment,)

    def setup(self, model: Network, data: Data, state: State) -> None:  # noqa: B027 (optional)
        """Prepare ``state`` before the first epoch; not called on resuming."""

    @abstractmethod
    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        """Return the parts of the loss of a batch."""

    def after_epoch(self, model: Network, data: Data, state: State) -> None:  # noqa: B027 (optional)
        """Update ``state`` after an epoch (relabelling, clusters); it is saved afterwards."""

    def parameter_groups(self, model: Network) -> list[dict[str, Any]]:
        """Return the optimizer's parameter groups, by default one of all parameters.

        A group may set options of the optimizer (``weight_decay``), and ``scale``, a factor of the rate.
        """
        return [{"params": list(model.module.parameters())}]

    def confidences(self, model: Network, images: Tensor) -> Mapping[str, Tensor]:
        """Return each of `outputs` for a batch of images: (n,), higher = more in-distribution.

        The detector ``output[name=NAME]`` evaluates it. Gradients flow if the caller enables them.
        """
        return {}


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the cross-entropy (n,) of each image."""
    return nn.functional.cross_entropy(logits, labels, reduction="none")
