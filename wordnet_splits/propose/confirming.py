"""Which synsets of a catalog nobody confirmed: proposals too unsure to go without a person's word."""

from __future__ import annotations

from wordnet_splits.catalog import CatalogClass
from wordnet_splits.propose.model import Model


def is_unconfirmed(item: CatalogClass) -> bool:
    """Say whether a synset was proposed, at a confidence below the threshold of asking or unknown.

    A person who confirms it writes ``hand`` for ``proposed``.
    """
    if item.mapped != "proposed":
        return False
    return item.confidence is None or item.confidence < Model.shipped().ask_below
