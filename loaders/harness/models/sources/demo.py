"""The embedded network of the first example: ``demo:digits``."""

from __future__ import annotations

from importlib.resources import files

from safetensors.torch import load
from torch import nn

from wordnet_splits.base.errors import DataError, unknown

from ..transforms import Normalise
from .registry import LoadedModel, ModelRequest, register_model_source

NAMES = ("digits",)
CLASSES = ("zero", "one", "two", "three", "four", "five")
INPUTS, HIDDEN = 3 * 8 * 8, 32


@register_model_source("demo")
def demo_network(name: str, request: ModelRequest) -> LoadedModel:
    """Load a network with a hidden layer, which ``python -m tools.demo_network`` trained on digits 0 to 5."""
    if request.weights is not None:
        raise DataError("an embedded network has weights of its own", where=f"demo:{name}")
    if name not in NAMES:
        raise unknown("embedded network", name, NAMES)
    network = nn.Sequential(
        nn.Flatten(), nn.Linear(INPUTS, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, len(CLASSES))
    )
    stored = files("wordnet_splits").joinpath("data", "demo", f"{name}.safetensors").read_bytes()
    network.load_state_dict({key: tensor.float() for key, tensor in load(stored).items()})
    return LoadedModel(
        f"demo:{name}",
        network.eval(),
        repr(network),
        classes=CLASSES,
        normalise=Normalise.of([0.0] * 3, [1.0] * 3),
    )
