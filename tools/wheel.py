"""Build hook of the wheel: benchmarks with each digest stored once (`benchmark.manifest.loading`).

Image tables are written without digests; the digests that no shipped inventory has go into one
``digests.parquet``. The libraries that `wordnet_splits.benchmark.manifest` imports are build requirements.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

TARGET = "wordnet_splits/_manifests"


class ManifestsHook(BuildHookInterface[Any]):
    """Puts ``manifests/`` without ``results/`` into the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the files; an editable install reads the checkout's."""
        if version == "editable":
            return
        manifests = Path(self.root) / "manifests"
        if not manifests.is_dir():  # an sdist already has the wheel's layout
            return
        files = {path: path.relative_to(manifests) for path in manifests.rglob("*") if path.is_file()}
        files = {path: name for path, name in files.items() if name.parts[0] != "results"}
        self.packaged = tempfile.TemporaryDirectory()
        sys.path.insert(0, self.root)
        slimmed = slim(files, Path(self.packaged.name))
        build_data["force_include"].update(
            {str(p): f"{TARGET}/{name.as_posix()}" for p, name in slimmed.items()}
        )


def slim(files: dict[Path, Path], out: Path) -> dict[Path, Path]:
    """Return the files to package and their places in the package; new ones are written into ``out``."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from wordnet_splits.base.parquet import read_table, write_table
    from wordnet_splits.benchmark.manifest.loading import (
        DIGEST_SCHEMA,
        DIGESTS,
        packaged_digests,
        with_digests,
    )

    tables = {n: p for p, n in sorted(files.items()) if n.parts[1:2] == ("images",)}
    unlisted: dict[tuple[str, str], bytes] = {}
    for path in tables.values():
        table = read_table(path, columns=["source", "image_id", "digest"])
        for source in table["source"].unique().to_pylist():
            listed_ids, _ = packaged_digests(source, None)
            new = table.filter(pc.invert(pc.is_in(table["image_id"], value_set=listed_ids)))
            rows = zip(new["image_id"].to_pylist(), new["digest"].to_pylist(), strict=True)
            unlisted |= {(source, image_id): digest for image_id, digest in rows if digest is not None}
    keys = sorted(unlisted)
    columns = [
        [source for source, _ in keys],
        [image_id for _, image_id in keys],
        [unlisted[key] for key in keys],
    ]
    write_table(pa.table(columns, schema=DIGEST_SCHEMA), out / DIGESTS)
    packaged = {path: name for path, name in files.items() if name not in tables}
    for path, name in files.items():
        if name in tables:
            slimmed = out / name
            slimmed.parent.mkdir(parents=True, exist_ok=True)
            table = read_table(path)
            write_table(table.drop_columns(["digest"]), slimmed)
            whole = with_digests(read_table(slimmed), slimmed).equals(table)
            packaged[slimmed if whole else path] = name  # another benchmark may have the digest
    return packaged | {out / DIGESTS: Path(DIGESTS)}
