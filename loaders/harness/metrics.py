"""The metrics under the harness's own name; they need no torch."""

from __future__ import annotations

from wordnet_splits.metrics import *  # noqa: F403 - all names of a face are handed on
from wordnet_splits.metrics import __all__ as __all__
