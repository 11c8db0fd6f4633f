"""``make fuzz``: seeded alterations of every kind of file we read, run by the real commands.

python -m tools.fuzz [--cases N] [--seed N] [--only NAME] [--workers N] [--table FILE]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tools.fuzz.page import as_page, as_table
from tools.fuzz.running import cases, fuzz


def main() -> int:
    """Run all cases; 1 where one ended badly."""
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz")
    parser.add_argument("--cases", type=int, default=1700, help="of all kinds")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="parts of the names of the kinds to run, by commas")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--table", type=Path, default=None)
    options = parser.parse_args()
    started = time.monotonic()
    results = []
    chosen = [
        case
        for case in cases(options.cases)
        if any(name in case.kind.name for name in options.only.split(","))
    ]
    if not chosen:
        parser.error(f"no kind has {options.only!r} in its name")
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        for result in fuzz(chosen, options.seed, Path(folder), workers=options.workers):
            results.append(result)
            if result.wrong:
                print(result, flush=True)
    print(as_table(results))
    seconds = [result.ended.seconds for result in results]
    most = max(result.ended.memory for result in results)
    print(
        f"{time.monotonic() - started:.0f} s, {sum(seconds):.0f} s of the processor; the longest case "
        f"{max(seconds):.1f} s, the largest {most >> 20} MiB",
        file=sys.stderr,
    )
    if options.table is not None:
        words = f"python -m tools.fuzz --cases {options.cases} --seed {options.seed}"
        before = options.table.read_text("utf-8") if options.only and options.table.exists() else ""
        options.table.write_text(as_page(results, words, before), "utf-8")
    return 1 if any(result.wrong for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
