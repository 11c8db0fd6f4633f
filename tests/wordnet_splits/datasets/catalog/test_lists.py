"""Lists of a user's own: where they are looked for, and what a stranger reads who has none."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.raising import raises
from wordnet_splits.base.errors import UnknownNameError
from wordnet_splits.benchmark.checks.verify import verify_benchmark
from wordnet_splits.benchmark.manifest import read_manifest
from wordnet_splits.datasets.catalog.inventory import ENVIRONMENT, find_list
from wordnet_splits.exchange import import_benchmark


@pytest.fixture
def author(tmp_path: Path) -> Path:
    """Return the folder of a recipe of own lists, its lists and its manifest."""
    lists = tmp_path / "in"
    lists.mkdir()
    (lists / "test_id.txt").write_text("".join(f"{n % 5}/{n}.png {n % 5}\n" for n in (0, 1, 2, 3, 4)))
    (lists / "test_odd.txt").write_text("5/5.png -1\n7/7.png -1\n")
    import_benchmark("openood", lists, tmp_path / "author", name="mine", source="digits")
    return tmp_path / "author"


def test_a_stranger_is_told_where_a_list_goes(author: Path, tmp_path: Path) -> None:
    stranger = tmp_path / "stranger"
    shutil.copytree(author / "mine", stranger / "mine")
    with raises(UnknownNameError, where="mine: group id, test", naming="mine/test_id") as caught:
        verify_benchmark(read_manifest(stranger / "mine"))
    assert caught.value.hint == (
        f"this list is not shipped: put mine/test_id.parquet into {stranger / 'lists'}"
    )
    shutil.copytree(author / "lists", stranger / "lists")
    assert verify_benchmark(read_manifest(stranger / "mine")).ok


def test_the_folder_of_the_variable_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path))
    with raises(UnknownNameError, naming=("zzz/qqq.parquet", tmp_path)):
        find_list("zzz/qqq")
    with raises(UnknownNameError, near="openood/cifar10_test_svhn"):
        find_list("openood/cifar10_test_svhm")
