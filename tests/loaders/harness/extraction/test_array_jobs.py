"""Extraction as an array job: shares, parts, and a merge that refuses what is not one whole job."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loaders.harness.evaluation.model_evaluation import EvaluationOptions, evaluate_models, extract_share
from loaders.harness.extraction.array_jobs import PartRecord, PlannedGroup, merge_parts
from loaders.harness.extraction.outputs import Store
from loaders.harness.extraction.shards import ROWS
from loaders.harness.extraction.stored_list import StoreError
from loaders.harness.models.loading import Models, load_model
from loaders.harness.results.printing import parse_share
from tests.raising import raises
from wordnet_splits.base.errors import DataError
from wordnet_splits.benchmark.resolve import load_manifest

from ..altering import reseal
from ..models.networks import Wrapped, small_network
from .stored import SHARD, contents

COUNT = 3
OPTIONS = EvaluationOptions(detectors="msp,knn[k=5]", groups=["digits-6-9", "uniform"], batch_size=32)


def two_models() -> Models:
    return Models(
        {str(seed): [load_model(Wrapped(small_network(seed=seed)), device="cpu")] for seed in (0, 1)}
    )


def extract(store: Path, index: int, options: EvaluationOptions = OPTIONS, count: int = COUNT) -> Any:
    return extract_share(two_models(), load_manifest("digits"), options, Store(store, SHARD), index, count)


@pytest.fixture(scope="module")
def all_parts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = tmp_path_factory.mktemp("array") / "store"
    for index in range(1, COUNT + 1):
        extract(store, index)
    return store


@pytest.fixture
def store(all_parts: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(all_parts, tmp_path / "store"))


def test_a_merged_job_has_the_bytes_of_one_run_and_no_image_is_forwarded_again(
    store: Path, tmp_path: Path
) -> None:
    merged = merge_parts(Store(store, SHARD))
    assert merged.parts == COUNT
    assert not (store / "parts").exists()
    extract(tmp_path / "alone", 1, count=1)
    merge_parts(Store(tmp_path / "alone", SHARD))
    assert contents(store) == contents(tmp_path / "alone")
    models = two_models()
    evaluate_models(models, load_manifest("digits"), EvaluationOptions(**{**vars(OPTIONS), "store": store}))
    assert all(run.module.seen <= 4 * 4 * ROWS for (run,) in models.values())  # the canaries of four groups


def test_jobs_share_the_forward_passes_evenly_and_all_models_of_a_shard(all_parts: Path) -> None:
    computed = [extract(all_parts, index) for index in range(1, COUNT + 1)]  # again: nothing is missing
    total = 2 * (603 + 360 + 714 + 500)  # of the training, ID, near and uniform images
    assert sum(part.images for part in computed) == total
    assert all(abs(part.images - total / COUNT) <= 2 * SHARD for part in computed)


@pytest.mark.parametrize("count", [1, 2, 7, 100])
def test_every_shard_is_in_one_share(count: int) -> None:
    groups = tuple(
        PlannedGroup(model_key=m * 64, transform_key="0" * 64, list_key=i * 64, n=n, units=("forward",))
        for i, n in (("a", 1000), ("b", 1), ("c", 128))
        for m in "de"
    )
    shards = [
        (group, shard)
        for index in range(1, count + 1)
        for group, of_group in PartRecord(schema=1, index=index, count=count, shard_rows=128, groups=groups)
        .share()
        .items()
        for shard in of_group
    ]
    assert sorted(shards) == [(g, s) for g, n in enumerate((8, 8, 1, 1, 1, 1)) for s in range(n)]


def _remove(store: Path) -> None:
    shutil.rmtree(store / "parts" / "2-of-3")


def _interrupt(store: Path) -> None:
    (store / "parts" / "2-of-3" / "part.json").unlink()


def _double(store: Path) -> None:
    shutil.copytree(store / "parts" / "2-of-3", store / "parts" / "2-of-3 again")


def _add_foreign(store: Path) -> None:
    shutil.rmtree(store / "parts" / "2-of-3")
    extract(store, 2, EvaluationOptions(**{**vars(OPTIONS), "detectors": "msp"}))


def _alter(store: Path) -> None:
    path = max((store / "parts" / "2-of-3").rglob("forward/logits/*.npy"))
    path.write_bytes(path.read_bytes()[:-1] + b"?")


def _lose(store: Path) -> None:
    max((store / "parts" / "2-of-3").rglob("forward/0*.json")).unlink()


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (_remove, "parts"),
        (_interrupt, "2-of-3"),
        (_double, "parts"),
        (_add_foreign, "2-of-3"),
        (_alter, "00002.npy"),
        (_lose, "00002.json"),
    ],
)
def test_a_merge_refuses_what_is_not_one_whole_job(
    store: Path, change: Callable[[Path], None], where: str
) -> None:
    change(store)
    with raises(StoreError, where=where) as refused:
        merge_parts(Store(store, SHARD))
    assert "\n" not in str(refused.value)
    assert {path.name for path in store.iterdir()} == {"parts"}


def test_a_folder_of_another_job_is_not_written_to(store: Path) -> None:
    with raises(StoreError, where="part.json"):
        extract(store, 1, EvaluationOptions(**{**vars(OPTIONS), "detectors": "msp"}))


@pytest.mark.parametrize("text", ["0/4", "5/4", "1", "a/b", "1/0", "-1/2"])
def test_a_wrong_share_is_refused(text: str) -> None:
    with raises(DataError, where="--shard"):
        parse_share(text)


def every_part(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    """Change part.json of every part, and seal it again."""

    def change_all(store: Path) -> None:
        for path in (store / "parts").glob("*/part.json"):
            reseal(path, change)

    return change_all


def _of_groups(**values: Any) -> Callable[[dict[str, Any]], object]:
    return lambda content: [group.update(values) for group in content["groups"]]


HOSTILE: dict[str, Callable[[Path], None]] = {
    "images without end": every_part(_of_groups(n=10**15)),
    "shards without end": every_part(_of_groups(n=10**9)),
    "parts without end": every_part(lambda content: content.update(count=10**12)),
    "a part beyond": every_part(lambda content: content.update(index=10**9)),
    "a unit elsewhere": every_part(_of_groups(units=["../../../../../elsewhere"])),
    "a unit at the root": every_part(_of_groups(units=["/tmp"])),
    "no unit of that name": every_part(_of_groups(units=["\0"])),
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE.keys())
def test_parts_that_lie_are_refused_at_once(store: Path, change: Callable[[Path], None]) -> None:
    change(store)
    with pytest.raises(DataError) as refused:
        merge_parts(Store(store, SHARD))
    assert str(refused.value.where).startswith(str(store / "parts"))
    assert {path.name for path in store.iterdir()} == {"parts"}


def test_a_unit_is_not_written_elsewhere(store: Path) -> None:
    part = Store(store / "parts" / "1-of-3", SHARD)
    group = part.list_at("a" * 64, "b" * 64, "c" * 64, n=1)
    with pytest.raises(DataError) as refused:
        group.write("../../../../elsewhere", 0, {"logits": np.zeros((1, 2), np.float32)}, {})
    assert refused.value.where == str(group.folder)
    assert not (store / "parts" / "elsewhere").exists()


def test_a_link_to_the_parts_is_refused_before_anything_is_merged(store: Path, tmp_path: Path) -> None:
    (store / "parts").rename(tmp_path / "scratch")
    (store / "parts").symlink_to(tmp_path / "scratch")
    with pytest.raises(StoreError) as refused:
        merge_parts(Store(store, SHARD))
    assert refused.value.where == str(store / "parts")
    assert {path.name for path in store.iterdir()} == {"parts"}
    assert merge_parts(Store(store, SHARD), keep=True).parts == COUNT


def test_a_part_that_is_a_link_is_merged_and_stays(store: Path, tmp_path: Path) -> None:
    (store / "parts" / "2-of-3").rename(tmp_path / "scratch")
    (store / "parts" / "2-of-3").symlink_to(tmp_path / "scratch")
    assert merge_parts(Store(store, SHARD)).parts == COUNT
    assert not (store / "parts").exists()
    assert (tmp_path / "scratch" / "part.json").exists()
