"""``make bench``: every ``bench_*.py`` beside this file, each figure with its peer from the same run.

``python -m tools.benchmarks [NAME ...] [--json FILE]`` runs the modules named, such as ``taxonomy``, and
stores their rows; `tools.benchmarks.record` makes the tables of the pages from them.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from pathlib import Path

from tools.benchmarks.record import store
from tools.benchmarks.rows import Row
from wordnet_splits.terminal.output import print_table


def main() -> int:
    """Run the benchmarks and print one table; nothing is asserted."""
    known = sorted(p.stem.removeprefix("bench_") for p in Path(__file__).parent.glob("bench_*.py"))
    parser = argparse.ArgumentParser(prog="python -m tools.benchmarks")
    parser.add_argument("names", nargs="*", metavar="NAME", help="modules to run; all by default")
    parser.add_argument("--json", type=Path, default=None, help="store the rows in this file")
    options = parser.parse_args()
    rows: list[Row] = []
    for name in options.names or known:
        if name not in known:
            print(f"no benchmark {name!r}; there are {', '.join(known)}", file=sys.stderr)
            return 2
        print(f"{name} ...", file=sys.stderr, flush=True)
        load = os.getloadavg()[0]
        try:
            of_module = importlib.import_module(f"tools.benchmarks.bench_{name}").run()
        except ImportError as error:
            print(f"  passed over: {error}", file=sys.stderr)
            continue
        rows += of_module
        if options.json is not None:
            store(options.json, name, of_module, load)
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
    sys.exit(main())
