"""``make audit``: every class list of ``lists.toml``, into ``docs/audit.md`` and ``docs/audit.parquet``.

python -m tools.audits --facts DIR [--out DIR]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tools.audits.page import as_table, filled, tables
from tools.audits.reading import audited, lists
from wordnet_splits.audit.thresholds import thresholds
from wordnet_splits.base import files
from wordnet_splits.base.parquet import write_table


def main() -> int:
    """Write the page's tables and the Parquet; 2 where a list that we do not ship is not at hand."""
    parser = argparse.ArgumentParser(prog="python -m tools.audits")
    parser.add_argument("--facts", type=Path, required=True, help="folder of published lists")
    parser.add_argument("--out", type=Path, default=Path("docs"), help="folder of audit.md")
    options = parser.parse_args()
    if absent := [one for one in lists() if one.file and not (options.facts / one.file).is_file()]:
        names = ", ".join(one.file for one in absent[:3])
        print(
            f"error: {options.facts}: lacks {len(absent)} lists: {names}, ...; --facts DIR", file=sys.stderr
        )
        return 2
    found = list(audited(options.facts))
    for one, audit in found:
        print(f"{one.name}: {audit.counts['leaking']:,} of {audit.counts['classes']:,}", file=sys.stderr)
    page = options.out / "audit.md"
    files.write_text(page, filled(page.read_text(encoding="utf-8"), tables(found)))
    thresholds().plot(options.out / "study" / "thresholds-imagenet21k.svg")
    write_table(as_table(found, options.facts), options.out / "audit.parquet")
    return 0


if __name__ == "__main__":
    sys.exit(main())
