"""The step of vision-language models: CLIP from a folder on a benchmark, with the usual detectors."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from loaders.harness import evaluate
from wordnet_splits.negatives.mining import mine_negatives

from .figures import Figures, step_arguments

DETECTORS = "msp,mls,mcm,energy,knn"
NEGATIVES = 1000


def main() -> int:
    """Evaluate, with as many mined negative words as the detectors need."""
    parser = step_arguments("a zero-shot model on a benchmark")
    parser.add_argument("--clip", required=True, help="folder of a CLIP model")
    parser.add_argument("--benchmark", required=True)
    parser.add_argument("--packed", type=Path, action="append", default=[])
    options = parser.parse_args()
    start, figures = time.monotonic(), Figures(options.figures)
    words = mine_negatives(margin=6, count=NEGATIVES, blind=["ssb-hard"])
    results = evaluate(
        f"clip:{options.clip}",
        options.benchmark,
        detectors=f"{DETECTORS},neglabel",
        options={"names": options.benchmark, "negatives": words},
        device=options.device,
        packed=options.packed or None,
        allow_missing=True,
    )
    for row in results.rows():
        if row["metric"] in ("accuracy", "auroc"):
            figures.add(f"{row['detector']} {row['group']} {row['metric']}", row["value"])
    figures.add("seconds", round(time.monotonic() - start, 1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
