"""``make bench``: every ``bench_*.py`` beside this file, each figure with its peer from the same run.

``python -m tests.benchmarks [NAME ...]`` runs the modules named, such as ``taxonomy``.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from tests.benchmarks.rows import Row
from wordnet_splits.cli.output import print_table


def main(names: list[str]) -> int:
    """Run the benchmarks and print one table; nothing is asserted."""
    known = sorted(p.stem.removeprefix("bench_") for p in Path(__file__).parent.glob("bench_*.py"))
    rows: list[Row] = []
    for name in names or known:
        if name not in known:
            print(f"no benchmark {name!r}; there are {', '.join(known)}", file=sys.stderr)
            return 2
        print(f"{name} ...", file=sys.stderr, flush=True)
        try:
            rows += importlib.import_module(f"tests.benchmarks.bench_{name}").run()
        except ImportError as error:
            print(f"  passed over: {error}", file=sys.stderr)
    print_table(
        ("what", "ours", "peer", "ratio", "target", "met"),
        [
            (r.name, r.ours, r.peer, "-" if r.ratio is None else f"{r.ratio:,.2f}", r.target, r.ok)
            for r in rows
        ],
        right=("ratio",),
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
