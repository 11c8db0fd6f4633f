"""Judge every benchmark again for ``docs/evidence/robust.md`` and ``docs/robust.parquet``: ``make robust``.

python -m tools.robustness --wordnet DIR_OF_WORDNET_3.1 [--out DIR]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pyarrow as pa

from tools.audits.page import filled
from tools.robustness.page import THERE, tables
from wordnet_splits.base import files
from wordnet_splits.base.errors import SplitsError
from wordnet_splits.base.parquet import write_table
from wordnet_splits.benchmark.recipe import buildable
from wordnet_splits.studies.robust import robust_roles


def main() -> int:
    """Write the Parquet and the page's tables; 2 where WordNet 3.1 is not at hand."""
    parser = argparse.ArgumentParser(prog="python -m tools.robustness")
    parser.add_argument("--wordnet", required=True, help="folder of WordNet 3.1's data.noun and index.noun")
    parser.add_argument("--out", type=Path, default=Path("docs"), help="folder of evidence/robust.md")
    options = parser.parse_args()
    columns = []
    try:
        for name in buildable():
            columns.append(robust_roles(name, wordnets=[options.wordnet]).to_table())
            print(f"{name}: {columns[-1].num_rows:,} classes", file=sys.stderr)
    except SplitsError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    table = pa.concat_tables(columns)
    if THERE not in table.column_names:
        print(f"error: {options.wordnet}: is not WordNet 3.1", file=sys.stderr)
        return 2
    page = options.out / "evidence" / "robust.md"
    files.write_text(page, filled(page.read_text(encoding="utf-8"), tables(table)))
    write_table(table, options.out / "robust.parquet")
    return 0


if __name__ == "__main__":
    sys.exit(main())
