"""The open score table at 1/100 of 500 networks x 250,000 images x 20 detectors: size, queries, metrics."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from loaders.harness.score_table import recompute
from loaders.harness.score_table.layout import (
    CONFIDENCES,
    CONFIDENCES_FOLDER,
    DESCRIPTION,
    IMAGES,
    IMAGES_FILE,
    LARGEST_PART,
    MODELS,
    MODELS_FILE,
    QUICK,
    TableBenchmark,
    TableDescription,
    part_path,
)
from tools.benchmarks.rows import Row
from wordnet_splits.base.parquet import write_table
from wordnet_splits.base.schemas import write_sealed
from wordnet_splits.base.untrusted import sha256_of

NETWORKS, IMAGES_EACH, DETECTORS, ID_IMAGES = 5, 250_000, 20, 50_000
FRACTION = 100
AUROC = """
    WITH ranked AS (
        SELECT model, image < {n_id} AS is_id,
               rank() OVER (PARTITION BY model ORDER BY confidence)
               + (count(*) OVER (PARTITION BY model, confidence) - 1) / 2 AS place
        FROM '{folder}/confidences/*/*/*.parquet' WHERE detector = 'detector-00'
    )
    SELECT model, (sum(place) FILTER (is_id) - {n_id}::DOUBLE * ({n_id} + 1) / 2) / ({n_id}::DOUBLE * {n_ood})
    FROM ranked GROUP BY model
"""


def make_table(folder: Path) -> float:
    """Write a table of made scores, and return the seconds that its confidences took."""
    rng = np.random.default_rng(0)
    is_id = np.arange(IMAGES_EACH) < ID_IMAGES
    numbers = np.arange(IMAGES_EACH, dtype=np.int32)
    images = {
        "benchmark": ["made"] * IMAGES_EACH,
        "image": numbers,
        "source": ["made"] * IMAGES_EACH,
        "image_id": [f"test/{number}" for number in numbers],
        "class_id": [f"{number % 1000}" for number in numbers],
        "group": np.where(is_id, "id", "near").tolist(),
        "role": np.where(is_id, "id", "near").tolist(),
        "label": np.where(is_id, numbers % 1000, -1).astype(np.int32),
    }
    write_table(pa.table(images, schema=IMAGES), folder / IMAGES_FILE)
    models = [
        {**dict.fromkeys(MODELS.names, "made"), "run": 0, "detectors": DETECTORS, "model": f"network-{n}"}
        for n in range(NETWORKS)
    ]
    write_table(pa.Table.from_pylist(models, schema=MODELS), folder / MODELS_FILE)
    seconds = 0.0
    for model in models:
        correct = pa.array(rng.random(IMAGES_EACH) < 0.75, mask=~is_id)
        parts = [
            pa.table(
                {
                    "image": numbers,
                    "detector": pa.repeat(f"detector-{number:02}", IMAGES_EACH),
                    "confidence": (rng.normal(size=IMAGES_EACH) + is_id).astype(np.float32),
                    "correct": correct,
                },
                schema=CONFIDENCES,
            )
            for number in range(DETECTORS)
        ]
        start = time.perf_counter()
        path = folder / part_path(CONFIDENCES_FOLDER, "made", model["model"], "made")
        write_table(pa.concat_tables(parts), path, compression_level=QUICK)
        seconds += time.perf_counter() - start
    benchmark = TableBenchmark(
        name="made", version=1, images_fingerprint=None, numbered_by="entries", images=IMAGES_EACH
    )
    checksums = {
        path.relative_to(folder).as_posix(): sha256_of(path, largest=LARGEST_PART)
        for path in folder.rglob("*.parquet")
    }
    description = TableDescription(
        schema=1, benchmarks=[benchmark], entries=["made"], notes=[], files=checksums
    )
    write_sealed(folder / DESCRIPTION, description.model_dump(mode="json", by_alias=True))
    return seconds


def run() -> list[Row]:
    """Measure, and check that DuckDB and `recompute` give one AUROC."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        written = make_table(folder)
        size = sum(path.stat().st_size for path in folder.rglob("*.parquet"))
        start = time.perf_counter()
        query = AUROC.format(folder=folder, n_id=ID_IMAGES, n_ood=IMAGES_EACH - ID_IMAGES)
        aurocs = dict(duckdb.sql(query).fetchall())
        in_sql = time.perf_counter() - start
        start = time.perf_counter()
        outcome = recompute(folder, "auroc", detectors=["detector-00"])
        recomputed = time.perf_counter() - start
        rows = [row for row in outcome.rows() if row["group"] == "near"]
        same = all(abs(row["value"] - aurocs[row["model"]]) < 1e-9 for row in rows) and len(rows) == NETWORKS
    scores = NETWORKS * IMAGES_EACH * DETECTORS
    raw = 4 * scores
    return [
        Row(
            f"score table, {scores:,} scores written",
            f"{size / 1e6:.0f} MB in {written:.0f} s",
            f"{raw / 1e6:.0f} MB of float32",
            raw / size,
            f"at most {raw * FRACTION / 1e9:.0f} GB for 100 times as many",
            size <= raw,
        ),
        Row(
            f"AUROC of a detector of {NETWORKS} networks, {IMAGES_EACH:,} images each",
            f"{recomputed:.1f} s by recompute, equal: {'yes' if same else 'no'}",
            f"{in_sql:.1f} s in DuckDB",
            in_sql / recomputed,
            "-",
            None,
        ),
    ]
