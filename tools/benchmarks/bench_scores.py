"""The open score table at 1/100 of 500 networks x 250,000 images x 20 detectors: size, queries, metrics."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from loaders.harness.results import recompute
from loaders.harness.results.exported_scores import (
    DESCRIPTION,
    LARGEST_FILE,
    QUICK,
    Network,
    ScoreTableMetadata,
)
from loaders.harness.results.metadata import DetectorFacts
from loaders.harness.results.results import SCORED
from loaders.harness.results.scores import MODEL, PREDICTED, prediction_table, score_table
from tools.benchmarks.rows import Row
from wordnet_splits.base.parquet import write_table
from wordnet_splits.base.text_formats import write_sealed
from wordnet_splits.base.untrusted import sha256_of

NETWORKS, IMAGES_EACH, DETECTORS, ID_IMAGES = 5, 250_000, 20, 50_000
FRACTION = 100
AUROC = """
    WITH ranked AS (
        SELECT role = 'id' AS is_id,
               rank() OVER (ORDER BY "{column}") + (count(*) OVER (PARTITION BY "{column}") - 1) / 2 AS place
        FROM '{folder}/made/scores.parquet'
    )
    SELECT (sum(place) FILTER (is_id) - {n_id}::DOUBLE * ({n_id} + 1) / 2) / ({n_id}::DOUBLE * {n_ood})
    FROM ranked
"""


def make_table(folder: Path) -> float:
    """Write a table of made scores, and return the seconds that writing took."""
    rng = np.random.default_rng(0)
    is_id = np.arange(IMAGES_EACH) < ID_IMAGES
    numbers = np.arange(IMAGES_EACH, dtype=np.int32)
    labels = np.where(is_id, numbers % 1000, -1).astype(np.int32)
    images = pa.table(
        {
            "source": ["made"] * IMAGES_EACH,
            "image_id": [f"test/{number}" for number in numbers],
            "class_id": [f"{number % 1000}" for number in numbers],
            "group": np.where(is_id, "id", "near").tolist(),
            "role": np.where(is_id, "id", "near").tolist(),
            "label": labels,
        }
    )
    keys = [(f"detector-{number:02}", run) for run in range(NETWORKS) for number in range(DETECTORS)]
    scores = score_table(images, {key: rng.normal(size=IMAGES_EACH) + is_id for key in keys})
    predicted = {}
    for run in range(NETWORKS):
        labels_said = np.where(rng.random(IMAGES_EACH) < 0.75, labels, labels + 1).astype(np.int32)
        said = {f.name: pa.nulls(IMAGES_EACH, f.type) for f in PREDICTED}
        predicted[MODEL, run] = pa.table(said | {"prediction": pa.array(labels_said)})
    tables = (scores, prediction_table(predicted))
    start = time.perf_counter()
    for name, table in zip(SCORED, tables, strict=True):
        write_table(table, folder / "made" / name, compression_level=QUICK, split_bytes=True)
    seconds = time.perf_counter() - start
    networks = [
        Network(run=run, model=f"network-{run}", name="made", model_key=f"{run}", transforms=[], entries=[])
        for run in range(NETWORKS)
    ]
    description = ScoreTableMetadata(
        schema=2,
        benchmark="made",
        version=1,
        images_fingerprint=None,
        evaluation_fingerprint="",
        networks=networks,
        detectors=[DetectorFacts(detector=name, run=run, runs=(run,), params={}) for name, run in keys],
        notes=[],
        files={name: sha256_of(folder / "made" / name, largest=LARGEST_FILE) for name in SCORED},
    )
    write_sealed(folder / "made" / DESCRIPTION, description.model_dump(mode="json", by_alias=True))
    return seconds


def run() -> list[Row]:
    """Measure, and check that DuckDB and `recompute` give one AUROC."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        written = make_table(folder)
        size = sum(path.stat().st_size for path in folder.rglob("*.parquet"))
        start = time.perf_counter()
        aurocs = []
        for network in range(NETWORKS):
            column = f"detector-00/{network}"
            query = AUROC.format(column=column, folder=folder, n_id=ID_IMAGES, n_ood=IMAGES_EACH - ID_IMAGES)
            aurocs.append(duckdb.sql(query).fetchall()[0][0])
        in_sql = time.perf_counter() - start
        start = time.perf_counter()
        outcome = recompute(folder, "auroc", detectors=["detector-00"])
        recomputed = time.perf_counter() - start
        rows = [row for row in outcome.rows() if row["group"] == "near"]
        same = len(rows) == NETWORKS and all(abs(row["value"] - aurocs[row["run"]]) < 1e-9 for row in rows)
    scores = NETWORKS * IMAGES_EACH * DETECTORS
    raw = 8 * scores
    return [
        Row(
            f"score table, {scores:,} scores written",
            f"{size / 1e6:.0f} MB in {written:.0f} s",
            f"{raw / 1e6:.0f} MB of float64",
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
