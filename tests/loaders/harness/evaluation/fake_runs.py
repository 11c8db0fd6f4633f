"""Models that were never run: features around class centres, for the images of real manifests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from loaders.harness.data.arrays import Arrays
from loaders.harness.extraction.outputs import GroupOutputs, ModelRun
from tests.made_manifests import made_manifest
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.benchmark.manifest.tables import CLASS_SCHEMA, IMAGE_SCHEMA

WIDTH = 8
DIFFICULTY = {"id": 0.0, "csid": 0.5, "near": 1.5, "far": 4.0, "external": 2.5}
"""How far from the class centres the images of a role are."""


@dataclass(frozen=True)
class Reading:
    """Outputs that a function reads, by split, group and needs."""

    read: Callable[[str, str, frozenset[Any]], GroupOutputs]

    def require(self, split: str, name: str, needs: frozenset[Any] = frozenset()) -> None:
        """Everything is there."""

    def reading(self, images: int) -> AbstractContextManager[None]:
        return nullcontext()


def fake_run(
    manifest: Manifest,
    seed: int = 0,
    *,
    model: str = "fake",
    splits: Sequence[str] = ("train", "val", "test"),
    temperature: float = 6,
    **arrays: Any,
) -> ModelRun:
    """A run of ``model`` whose confidence is higher for ID, and wrong now and then.

    Of one seed all have the same features, whatever the temperature of their heads.
    """
    roles = {row.group: row.role for row in manifest.groups}
    classes = 1 + int(max(label for label in manifest.classes["label"].to_pylist()))
    centres = 3 * np.random.default_rng(99).normal(size=(classes, WIDTH))
    groups = {}
    for number, (split, group) in enumerate(sorted(manifest.parts)):
        if split not in splits:
            continue
        rng = np.random.default_rng([seed, number])
        table = manifest.images(split, group)
        labels = table["label"].to_numpy()
        likely = np.where(labels >= 0, labels, rng.integers(0, classes, len(labels)))
        away = DIFFICULTY[roles[group]]
        features = centres[likely] / (1 + away) + (1 + away / 4) * rng.normal(size=(len(labels), WIDTH))
        logits = features @ centres.T / temperature
        held = {"features": features.astype(np.float32), "logits": logits.astype(np.float32)}
        if split != "test":
            held["labels"] = labels.astype(np.int64)
        groups[split, group] = GroupOutputs(table, Arrays(held), transform_key="t", **arrays)
    return ModelRun.of(model, groups, model_key=f"{model}-key-{seed}", name=f"{model}-{seed}")


def fake_manifest(
    groups: Sequence[tuple[str, str, str, int]], *, classes: int = 4, name: str = "made"
) -> Manifest:
    """A benchmark of (group, role, split, images); a group has ``classes`` classes, ID ones labelled.

    The classes of near groups are nearer to ID than those of far ones.
    """
    class_rows, parts, about = [], {}, []
    for group, role, _, _ in dict.fromkeys((g[0], g[1], "", 0) for g in groups):
        for number in range(classes):
            labelled = role in ("id", "csid")
            similarity = {"near": 0.6, "far": 0.2}.get(role, 0.4) + 0.05 * number
            class_rows.append(
                {
                    **dict.fromkeys(CLASS_SCHEMA.names),
                    "source": group,
                    "class_id": f"{group}-{number}",
                    "name": f"{group} {number}",
                    "role": role,
                    "group": group,
                    "label": number if labelled else -1,
                    "mean": similarity,
                }
            )
    for group, role, split, count in groups:
        labelled = role in ("id", "csid")
        rows = [
            {
                "source": group,
                "image_id": f"{split}-{i:05d}",
                "class_id": f"{group}-{i % classes}",
                "role": role,
                "group": group,
                "split": split,
                "label": i % classes if labelled else -1,
                "view": "raw",
                "digest": None,
            }
            for i in range(count)
        ]
        table = pa.Table.from_pylist(rows, schema=IMAGE_SCHEMA)
        parts[split, group] = lambda table=table: table
        about.append({"group": group, "role": role, "split": split, "expected": count})
    table = pa.Table.from_pylist(class_rows, schema=CLASS_SCHEMA)
    return made_manifest(about, parts, classes=table, name=name)


OPEN_SET = fake_manifest(
    [
        ("known", "id", "train", 80),
        ("known", "id", "val", 60),
        ("known", "id", "test", 200),
        ("negative", "external", "val", 40),
        ("negative", "external", "test", 90),
        ("near-a", "near", "test", 120),
        ("far-a", "far", "test", 70),
        ("far-b", "far", "test", 150),
    ]
)
