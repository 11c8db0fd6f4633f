"""Model sources by name: ``PREFIX:NAME`` -> a loaded network."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from torch import Tensor, nn

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.registry import Registry

from ..transforms import Normalise, Transform, evaluation_transform
from ..trial import DEADLINE


@dataclass
class LoadedModel:
    """A model as loaded by its source.

    Attributes
    ----------
    name : for messages and results.
    module : the nn.Module, None for a function.
    architecture : text that describes how its tensors are connected; part of the model's key.
    network : x -> (features or None, logits); None for the module with a hook at its head.
    preprocess : its preprocessing, if any.
    classes : class names or wnids, one per column.
    numbered : whether the class names are numbers in order, and so may be column numbers.
    source_of_classes : the source whose classes, in label order, the columns are.
    background : the column of its background class, None where it has none.
    series : name shared by trained runs that differ in the seed.
    identified : whether its tensors and architecture identify it; false for a function without a
        ``model_id``.
    normalise : the normalisation that it states for its inputs, None where it states none.
    notes : sentences on how it was loaded, for results.
    head : name of the classifier head, None where it has to be found.
    trial : called once with the first batch, before it is computed; raises DataError.
    deadline : most seconds for a batch, None for a program without loops.
    """

    name: str
    module: nn.Module | None = None
    architecture: str = ""
    network: Callable[[Tensor], tuple[Tensor | None, Tensor]] | None = None
    preprocess: Transform | None = None
    classes: tuple[str, ...] | None = None
    numbered: bool = False
    source_of_classes: str | None = None
    background: int | None = None
    series: str = ""
    identified: bool = True
    normalise: Normalise | None = None
    notes: tuple[str, ...] = ()
    head: str | None = None
    trial: Callable[[Tensor], None] | None = None
    deadline: float | None = None


@dataclass(frozen=True)
class ModelRequest:
    """Options of a model other than its name, see `loading.load_model`; ``device`` is the kind: cpu, cuda."""

    weights: str | None = None
    trust: bool = False
    model_id: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    device: str = "cpu"
    deadline: float = DEADLINE


class ModelSource(Protocol):
    """Loads a model by the name after the prefix."""

    def __call__(self, name: str, request: ModelRequest) -> LoadedModel:
        """Load it, or raise a SplitsError."""


SOURCES: Final = Registry[ModelSource](
    "source of models",
    str(__package__),
    "wordnet_splits.models",
    rooms=str(__package__).removesuffix(".models.sources"),
    room_module="model_source",
)
_suffixes: dict[str, str] = {}


def register_model_source(prefix: str, *suffixes: str) -> Callable[[ModelSource], ModelSource]:
    """Register the decorated function as the source of ``prefix:NAME`` and of files with some suffixes."""

    def add(function: ModelSource) -> ModelSource:
        SOURCES.register(prefix)(function)
        _suffixes.update(dict.fromkeys(suffixes, prefix))
        return function

    return add


def file_sources() -> Mapping[str, str]:
    """Return the suffix of a file -> prefix of the source that loads it, for all sources."""
    SOURCES.names()  # imports the source modules
    return _suffixes


PREFIX = "trained:"
METADATA = "model.json"
"""File of a folder that `unknown-eval train` has finished."""


def training_facts(module: Any) -> dict[str, Any]:
    """Return the classes, background column, preprocessing and head of a network of `load_checkpoint`."""
    inputs = module.metadata["input"]
    mean, std, resize = inputs["mean"], inputs["std"], inputs.get("resize")
    return {
        "preprocess": evaluation_transform(resize, mean, std) if resize else None,
        "classes": module.classes,
        "background": module.background,
        "normalise": Normalise.of(mean, std),
        "head": (module.metadata.get("method") or {}).get("head"),
    }


def trained_folders(name: str) -> list[Path]:
    """Return the sorted folders of models at a path: a model's folder, a folder of models, or a pattern."""
    path = Path(name)
    if any(c in name for c in "*?["):
        candidates = sorted(Path(path.anchor or ".").glob(str(path.relative_to(path.anchor))))
    elif (path / METADATA).exists() or not path.is_dir():
        candidates = [path]
    else:
        candidates = sorted(path.iterdir())
    folders = [folder for folder in candidates if (folder / METADATA).is_file()]
    if not folders:
        raise DataError(
            "no trained model here", where=name, hint="give a folder that `unknown-eval train` has written"
        )
    return folders
