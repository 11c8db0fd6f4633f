"""``make bench``: every ``bench_*.py`` of this folder, each number with its peer's from the same run.

``python -m tools.benchmarks [NAME[,NAME]...] [--json FILE]`` runs some modules, such as ``taxonomy,loaders``,
and stores their rows; `tools.benchmarks.record` makes the tables of the pages from them.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tools.benchmarks.record import store
from tools.benchmarks.rows import Row
from wordnet_splits.base.terminal.output import print_table


def module_names() -> list[str]:
    """Return the names of the modules, without ``bench_``."""
    return sorted(path.stem.removeprefix("bench_") for path in Path(__file__).parent.glob("bench_*.py"))


def main(words: Sequence[str] | None = None) -> int:
    """Run the benchmarks and print one table; nothing is asserted."""
    modules = module_names()
    parser = argparse.ArgumentParser(prog="python -m tools.benchmarks")
    parser.add_argument("names", nargs="*", metavar="NAME[,NAME]", help="modules to run; by default all")
    parser.add_argument("--json", type=Path, default=None, help="store the rows in this file")
    options = parser.parse_args(words)
    names = [name for text in options.names for name in text.split(",") if name]
    if unknown_names := [name for name in names if name not in modules]:
        print(f"no benchmark {unknown_names[0]!r}; there are {', '.join(modules)}", file=sys.stderr)
        return 2
    rows: list[Row] = []
    for name in names or modules:
        load, start = os.getloadavg()[0], time.perf_counter()
        try:
            module_rows = importlib.import_module(f"tools.benchmarks.bench_{name}").run()
        except ImportError as error:
            print(f"{name}: skipped: {error}", file=sys.stderr, flush=True)
            continue
        print(f"{name}: {time.perf_counter() - start:.0f} s, load {load:.1f}", file=sys.stderr, flush=True)
        rows += module_rows
        if options.json is not None:
            store(options.json, name, module_rows, load)
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
