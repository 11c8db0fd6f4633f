"""The origin of a network's weights."""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

OriginKind = Literal["published", "trained", "file", "named", "model", "python", "arrays", "unknown"]


class WeightsOrigin(BaseModel):
    """The origin of a network's weights; as text, a phrase for tables.

    Attributes
    ----------
    kind : ``published`` with the architecture (``timm:resnet50``); ``trained`` by `train`; a ``file`` of
        weights; weights ``named`` by a library; a ``model`` that holds its own (``net.onnx``,
        ``MODULE:NAME``); an object given in ``python``; outputs given as ``arrays``; or ``unknown``.
    spec : the specification that `load_model` takes, "" for objects and arrays.
    weights : the file or the name of the weights, "" where the specification names them.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: OriginKind = "unknown"
    spec: str = ""
    weights: str = ""

    @property
    def folder(self) -> str:
        """The folder of a trained network, "" for networks from other sources."""
        return self.spec.partition(":")[2] if self.kind == "trained" else ""

    def __str__(self) -> str:
        phrases = {
            "published": f"published, {self.spec}",
            "file": f"file {self.weights}",
            "named": self.weights,
            "python": "as given in Python",
            "arrays": "as given in arrays",
            "unknown": "",
        }
        return phrases.get(self.kind, self.spec)


UNKNOWN_ORIGIN = WeightsOrigin()
IN_PYTHON = WeightsOrigin(kind="python")
IN_ARRAYS = WeightsOrigin(kind="arrays")


def origin_of_weights(
    spec: object, weights: str | None, *, is_file: bool, sources: Container[str]
) -> WeightsOrigin:
    """Return where a model's weights come from, at the time of loading.

    Parameters
    ----------
    spec : the specification of the model, or an object.
    is_file : whether ``weights`` are a file, not a name.
    sources : the prefixes of model sources.
    """
    spec = spec if isinstance(spec, str) else ""
    if weights is not None:
        return WeightsOrigin(kind="file" if is_file else "named", spec=spec, weights=weights)
    if not spec:
        return IN_PYTHON
    prefix, _, name = spec.partition(":")
    if prefix in sources and not Path(name).exists():
        return WeightsOrigin(kind="published", spec=spec)
    return WeightsOrigin(kind="trained" if prefix == "trained" else "model", spec=spec)
