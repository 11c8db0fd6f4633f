"""The origin of a network's weights."""

from __future__ import annotations

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
