"""Benchmarks for what a vision model does not know: ID, near-OOD, far-OOD and external splits from WordNet.

Everything public is reachable from here and imported when first used, so that ``import wordnet_splits``
stays far below a third of a second:

>>> import wordnet_splits as ws
>>> ws.compare_synsets("n02084071", "n02121620").lcs  # dog and cat meet at carnivore
'n02075296'
"""

from __future__ import annotations

from typing import Any

from wordnet_splits.base.lazy import attach_stub

_find, __dir__, __all__ = attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("wordnet-splits")
    return _find(name)
