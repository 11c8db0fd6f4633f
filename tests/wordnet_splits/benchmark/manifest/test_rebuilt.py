"""A benchmark that is built again while it is read: never called altered, and read whole from one build."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.raising import raises
from wordnet_splits.base import files
from wordnet_splits.base.errors import ManifestError
from wordnet_splits.base.files import replacing_folder
from wordnet_splits.benchmark.checks import verify as verifying
from wordnet_splits.benchmark.checks.verify import verify_benchmark
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.benchmark.manifest import loading as reading
from wordnet_splits.benchmark.manifest.loading import Check, manifest_names, shipped_folder
from wordnet_splits.benchmark.manifest.tables import evaluation_fingerprint
from wordnet_splits.benchmark.resolve import find_manifest, load_manifest

OLD, NEW = (shipped_folder() / name for name in ("digits", "unknown-cifar-tinyval"))


def put(source: Path, folder: Path) -> None:
    """Replace a benchmark as a build does."""
    with replacing_folder(folder) as part:
        shutil.copytree(source, part, dirs_exist_ok=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    put(OLD, tmp_path / "digits")
    return tmp_path / "digits"


def rebuilt_after(read: Callable[..., Manifest], sources: Iterator[Path], folder: Path) -> Callable:
    """Return ``read`` with a build that replaces the folder just after ``manifest.json`` was read."""

    def read_and_replace(*arguments: object, **options: bool) -> Manifest:
        result = read(*arguments, **options)
        if (source := next(sources, None)) is not None:
            put(source, folder)
        return result

    return read_and_replace


@pytest.mark.parametrize("check", ["all", "classes"])
def test_a_reader_gets_the_new_one(folder: Path, monkeypatch: pytest.MonkeyPatch, check: Check) -> None:
    monkeypatch.setattr(reading, "_read", rebuilt_after(reading._read, iter([NEW]), folder))
    assert load_manifest(folder, check=check).name == NEW.name


def test_verify_checks_the_new_one(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(NEW, folder)
    read = reading.read_manifest(folder)
    put(OLD, folder)
    assert verify_benchmark(read).ok  # read before another build, and verified after it
    put(NEW, folder)
    monkeypatch.setattr(verifying, "read_again", rebuilt_after(reading.read_again, iter([OLD]), folder))
    assert verify_benchmark(read).ok  # replaced while it is verified


def test_a_table_read_later_is_not_called_altered(folder: Path) -> None:
    opened = load_manifest(folder)
    put(OLD, folder)
    assert opened.images().num_rows > 0  # the same images
    put(NEW, folder)
    with raises(ManifestError, where="digits"):
        opened.images()


def test_what_is_altered_is_called_so(folder: Path) -> None:
    opened = load_manifest(folder)
    shutil.copy(folder / "images/test/uniform.parquet", folder / "images/test/gaussian.parquet")
    with raises(ManifestError, where="gaussian.parquet"):
        opened.images()
    with pytest.raises(ManifestError):
        load_manifest(folder)


def test_builds_without_end_are_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    endless = (source for _ in range(99) for source in (NEW, OLD))
    monkeypatch.setattr(reading, "_read", rebuilt_after(reading._read, endless, folder))
    with raises(ManifestError, where="digits"):
        load_manifest(folder)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there are two renames")
def test_a_folder_is_replaced_in_one_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    if not files._exchanged(tmp_path / "a", tmp_path / "b"):
        pytest.skip("this disk cannot exchange folders")
    put(OLD, tmp_path / "digits")
    monkeypatch.setattr(Path, "rename", lambda *names: pytest.fail("the folder is absent for a moment"))
    put(NEW, tmp_path / "digits")
    assert load_manifest(tmp_path / "digits").name == NEW.name
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "digits"]


def test_a_folder_is_replaced_where_the_system_cannot_exchange(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_exchanged", lambda a, b: False)
    put(OLD, tmp_path / "digits")
    put(NEW, tmp_path / "digits")
    assert load_manifest(tmp_path / "digits").name == NEW.name
    assert [path.name for path in tmp_path.iterdir()] == ["digits"]


Change = Callable[[dict[str, Any]], None]


def copy_of_digits(folder: Path, change: Change, *, sealed: bool = True) -> Path:
    """Copy ``digits`` with another manifest.json, whose evaluation fingerprint fits it where ``sealed``."""
    copied = Path(shutil.copytree(find_manifest("digits"), folder / "digits"))
    data = json.loads((copied / "manifest.json").read_text("utf-8"))
    change(data)
    if sealed:
        data["fingerprints"]["evaluation"] = evaluation_fingerprint(data["recipe"], data["groups"])
    (copied / "manifest.json").write_text(json.dumps(data), "utf-8")
    return copied


def _normalise(data: dict[str, Any]) -> None:
    data["recipe"]["normalise"] = {"mean": [0.1, 0.2, 0.3], "sd": [0.5, 0.5, 0.5]}


def _transform(data: dict[str, Any]) -> None:
    data["recipe"]["transforms"]["digits"] = "resize-32"


def _role(data: dict[str, Any]) -> None:
    for row in data["groups"]:
        row["role"] = {"near": "far"}.get(row["role"], row["role"])


@pytest.mark.parametrize("change", [_normalise, _transform, _role])
def test_what_an_evaluation_reads_has_a_fingerprint(tmp_path: Path, change: Change) -> None:
    copied = copy_of_digits(tmp_path, change, sealed=False)
    with pytest.raises(ManifestError):
        load_manifest(copied)


@pytest.mark.parametrize("change", [_normalise, _transform])
def test_another_benchmark_under_a_shipped_name_is_not_loaded(tmp_path: Path, change: Change) -> None:
    """Its fingerprints hold: only the shipped one says that it is not the benchmark of that name."""
    copied = copy_of_digits(tmp_path, change)
    with raises(ManifestError, where="digits"):
        load_manifest(copied)
    assert load_manifest(copied, as_shipped=False).name == "digits"


def test_another_draw_of_a_shipped_benchmark_is_evaluated_as_it_is(tmp_path: Path) -> None:
    def drawn_again(data: dict[str, Any]) -> None:
        data["name"], data["seed"] = "digits@seed=5", 5

    assert load_manifest(copy_of_digits(tmp_path / "same", drawn_again)).name == "digits@seed=5"
    copied = copy_of_digits(tmp_path / "other", lambda data: (drawn_again(data), _normalise(data))[0])
    with raises(ManifestError, where="digits", naming="normalisation"):
        load_manifest(copied)


def test_a_later_version_is_a_benchmark_of_its_own(tmp_path: Path) -> None:
    def later(data: dict[str, Any]) -> None:
        data["version"] = 2
        _normalise(data)

    assert load_manifest(copy_of_digits(tmp_path, later)).version == 2


@pytest.mark.parametrize("name", manifest_names())
def test_every_shipped_manifest_has_the_fingerprint_of_its_evaluation(name: str) -> None:
    data = json.loads((find_manifest(name) / "manifest.json").read_text("utf-8"))
    assert data["fingerprints"]["evaluation"] == evaluation_fingerprint(data["recipe"], data["groups"])
