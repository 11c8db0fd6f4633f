"""Results as one page of HTML that needs nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wordnet_splits.base.lazy import names_of

if TYPE_CHECKING:
    from .write_report import report

__all__ = ["report"]

__getattr__ = names_of(__name__, {"write_report": ("report",)})
