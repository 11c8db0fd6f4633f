"""``make proposals``: top-1, top-5 and calibration of the proposals against the hand-made catalogs.

python -m tests.proposals [--superclasses] [--failures] [--fit]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from tests.proposals.fitting import answered, fit
from tests.proposals.measure import SETS, Score, held_out, reliability, score
from wordnet_splits.propose.model import Model

MODEL = Path("wordnet_splits/data/proposals.toml")
BESIDE = ("imagenet1k", "tiny-imagenet", "ninco", "inaturalist", "dtd")
"""Answered by the shipped model; names of ImageNet are first lemmas of their synsets."""
EDGES = (0.0, 0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)


def main() -> int:
    """Print the tables; with --fit, also write the weights fitted on all datasets."""
    parser = argparse.ArgumentParser(prog="python -m tests.proposals")
    parser.add_argument("--superclasses", action="store_true", help="give the catalogs' superclasses, too")
    parser.add_argument("--failures", action="store_true", help="list the names that are not right")
    parser.add_argument("--fit", action="store_true", help=f"write {MODEL}")
    options = parser.parse_args()
    sets = [answered(source, superclasses=options.superclasses) for source in SETS]
    scores = held_out(sets)
    model = fit(sets) if options.fit else Model.shipped()
    if options.fit:
        MODEL.write_text(_toml(model.as_dict()), encoding="utf-8")
    _print_scores("dataset, held out", scores, mean=True)
    print("\n| confidence | names | mean confidence | right |\n|---|---:|---:|---:|")
    for low, high, count, mean, right in reliability(scores, EDGES):
        print(f"| {low:.2f}-{high:.2f} | {count} | {100 * mean:.1f} | {100 * right:.1f} |")
    print()
    beside = [score(model, answered(s, superclasses=options.superclasses)) for s in BESIDE]
    _print_scores("dataset in no fit", beside)
    if options.failures:
        for s in [*scores, *beside]:
            print(f"\n{s.source}: " + ", ".join(n for n, r in zip(s.names, s.right, strict=True) if not r))
    return 0


def _print_scores(title: str, scores: list[Score], *, mean: bool = False) -> None:
    print(f"| {title} | names | top-1 | top-5 | among the candidates | asked | right of the rest |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    columns = ("first", "five", "covered", "asked", "unasked_right")
    for s in scores:
        cells = " | ".join(f"{100 * getattr(s, c):.1f}" for c in columns)
        print(f"| {s.source} | {len(s.names)} | {cells} |")
    if mean:
        means = " | ".join(f"{100 * np.mean([getattr(s, c) for s in scores]):.1f}" for c in columns)
        print(f"| mean | | {means} |")


def _toml(sections: dict[str, dict[str, float]]) -> str:
    head = (
        "# Weights of the synset proposals, fitted by `python -m tests.proposals --fit`; not to be edited.\n"
    )
    parts = [
        f"\n[{name}]\n" + "".join(f'"{key}" = {value:.4f}\n' for key, value in values.items())
        for name, values in sections.items()
    ]
    return head + "".join(parts)


if __name__ == "__main__":
    sys.exit(main())
