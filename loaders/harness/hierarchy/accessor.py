"""``results.hierarchy``: answers for every image at a node of WordNet, with their errors."""

from __future__ import annotations

from types import MethodType

from ..results.results import register_accessor
from ..results.scores import ResultTables
from .named_answers import name_unknowns


@register_accessor("hierarchy")
def answers(results: ResultTables) -> MethodType:
    """Return `hierarchy.name_unknowns`, bound to the results."""
    return MethodType(name_unknowns, results)
