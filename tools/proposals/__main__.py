"""``make proposals``: top-1, top-5 and calibration of the proposals against the hand-made catalogs.

python -m tools.proposals [--superclasses] [--failures] [--bare | --fit]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tools.proposals.fitting import Answered, answered, fit, household
from tools.proposals.measure import SETS, held_out, reliability_table, score, score_table
from wordnet_splits.linking.weights import Model

MODEL = Path("wordnet_splits/data/proposals.toml")
BESIDE = ("imagenet1k", "tiny-imagenet", "ninco", "inaturalist", "dtd")
"""Answered by the shipped model; names of ImageNet are first lemmas of their synsets."""


def main() -> int:
    """Print the tables; with --fit, also write the weights fitted on all datasets."""
    parser = argparse.ArgumentParser(prog="python -m tools.proposals")
    parser.add_argument("--superclasses", action="store_true", help="give the catalogs' superclasses, too")
    parser.add_argument("--failures", action="store_true", help="list the names that are not right")
    either = parser.add_mutually_exclusive_group()
    either.add_argument("--bare", action="store_true", help="WordNet alone, without our supplement")
    either.add_argument("--fit", action="store_true", help=f"write {MODEL}")
    options = parser.parse_args()

    def answers(source: str) -> Answered:
        return answered(source, superclasses=options.superclasses, supplemented=not options.bare)

    sets = [answers(source) for source in SETS]
    scores = held_out(sets)
    model = fit(sets) if options.fit else Model.shipped()
    if options.fit:
        MODEL.write_text(_toml(model.as_dict()), encoding="utf-8")
    print("\n".join(score_table(scores)), "\n".join(reliability_table(scores)), sep="\n\n", end="\n\n")
    beside = [score(model, s) for s in (*map(answers, BESIDE), household(supplemented=not options.bare))]
    print("\n".join(score_table(beside, held_out=False)))
    if options.failures:
        for s in [*scores, *beside]:
            print(f"\n{s.source}: " + ", ".join(n for n, r in zip(s.names, s.right, strict=True) if not r))
    return 0


def _toml(sections: dict[str, dict[str, float]]) -> str:
    head = (
        "# Weights of the synset proposals, fitted by `python -m tools.proposals --fit`; not to be edited.\n"
    )
    parts = [
        f"\n[{name}]\n" + "".join(f'"{key}" = {value:.4f}\n' for key, value in values.items())
        for name, values in sections.items()
    ]
    return head + "".join(parts)


if __name__ == "__main__":
    sys.exit(main())
