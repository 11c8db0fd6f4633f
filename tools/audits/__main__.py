"""Audit lists of ``lists.toml`` for ``docs/evidence/audit.md`` and ``docs/audit.parquet``: ``make audit``.

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
    """Write the page's tables and the Parquet; 2 if an unshipped list is missing."""
    parser = argparse.ArgumentParser(prog="python -m tools.audits")
    parser.add_argument("--facts", type=Path, required=True, help="folder of published lists")
    parser.add_argument("--out", type=Path, default=Path("docs"), help="folder of evidence/audit.md")
    options = parser.parse_args()
    listed_files = [class_list.file for class_list in lists() if class_list.file]
    if missing := [file for file in listed_files if not (options.facts / file).is_file()]:
        names = ", ".join(missing[:3])
        print(
            f"error: {options.facts}: lacks {len(missing)} lists: {names}, ...; --facts DIR", file=sys.stderr
        )
        return 2
    audits = list(audited(options.facts))
    for class_list, audit in audits:
        counts = audit.counts
        print(f"{class_list.name}: {counts['leaking']:,} of {counts['classes']:,}", file=sys.stderr)
    page = options.out / "evidence" / "audit.md"
    files.write_text(page, filled(page.read_text(encoding="utf-8"), tables(audits)))
    thresholds().plot(options.out / "study" / "thresholds-imagenet21k.svg")
    write_table(as_table(audits, options.facts), options.out / "audit.parquet")
    return 0


if __name__ == "__main__":
    sys.exit(main())
