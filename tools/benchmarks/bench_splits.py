"""Import, class tables of all benchmarks, and an image table of ImageNet's size."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tools.benchmarks.rows import Row, fastest
from wordnet_splits.base import digests
from wordnet_splits.base.parquet import write_table
from wordnet_splits.benchmark.construct.assemble import build_class_table
from wordnet_splits.benchmark.construct.classes import decide_membership, labels_of
from wordnet_splits.benchmark.manifest.tables import image_table, images_fingerprint
from wordnet_splits.benchmark.recipe import buildable, load_recipe
from wordnet_splits.datasets.catalog import load_catalog
from wordnet_splits.wordnet.taxonomy import load

IMAGES = 1_281_167


def run() -> list[Row]:
    """Return the rows of this file."""
    return [import_time(), class_tables(), *image_rows()]


def import_time() -> Row:
    """Import the package in a fresh interpreter; the peer is an interpreter that imports nothing."""

    def seconds(code: str) -> float:
        return fastest(lambda: subprocess.run([sys.executable, "-c", code], check=True), 5)

    bare, importing = seconds("pass"), seconds("import wordnet_splits")
    loaded = seconds("import wordnet_splits as w; w.Taxonomy.embedded()") - bare
    return Row(
        "import wordnet_splits",
        f"{importing - bare:.3f} s; with the taxonomy {loaded:.3f} s",
        f"bare python {bare:.3f} s",
        None,
        "<= 0.3 s each",
        importing - bare <= 0.3 and loaded <= 0.6,
    )


def class_tables() -> Row:
    """Decide and write out the classes of every shipped benchmark, in a fresh interpreter."""
    code = "import tools.benchmarks.bench_splits as b; b.make_class_tables()"
    seconds = fastest(lambda: subprocess.run([sys.executable, "-c", code], check=True), 1)
    return Row(
        f"class tables of {len(buildable())} benchmarks",
        f"{seconds:.2f} s",
        "-",
        None,
        "<= 10 s",
        seconds <= 10,
    )


def make_class_tables() -> None:
    """Build the class table of every shipped benchmark."""
    taxonomy = load()
    for name in buildable():
        recipe = load_recipe(name)
        membership = decide_membership(recipe, recipe.seed, taxonomy)
        build_class_table(membership, labels_of(membership), taxonomy)


def imagenet_style_ids() -> dict[str, list[str]]:
    """Return as many made-up ids as ImageNet has training images, spread as its own are, by a hash."""
    images: dict[str, list[str]] = {}
    for item in load_catalog("imagenet1k"):
        count = item.counts["train"]
        assert count is not None
        numbers: set[int] = set()
        salt = 0
        while len(numbers) < count:
            digest = hashlib.shake_128(f"{item.class_id}/{salt}".encode()).digest(4 * count)
            words = (int.from_bytes(digest[n : n + 4], "little") for n in range(0, len(digest), 4))
            numbers.update(w % 30_000 for w in words)
            salt += 1
        images[item.class_id] = [f"{item.class_id}_{n}" for n in sorted(numbers)[:count]]
    return images


def image_rows() -> list[Row]:
    """Draw, tabulate, fingerprint and write 1.28 M images."""
    images = imagenet_style_ids()
    start = time.perf_counter()
    cut = {c: digests.order_images("bench", 0, "imagenet1k", c, ids) for c, ids in images.items()}
    table = image_table(
        source="imagenet1k",
        role="id",
        group="all",
        split="train",
        view="raw",
        labels={c: n for n, c in enumerate(sorted(cut))},
        images=cut,
    )
    images_fingerprint([table])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "images.parquet"
        write_table(table, path)
        seconds = time.perf_counter() - start
        size = path.stat().st_size / table.num_rows
    return [
        Row(
            f"image table of {table.num_rows:,} ids", f"{seconds:.2f} s", "-", None, "<= 10 s", seconds <= 10
        ),
        Row("its size without digests", f"{size:.2f} bytes a row", "-", None, "<= 4 bytes a row", size <= 4),
    ]
