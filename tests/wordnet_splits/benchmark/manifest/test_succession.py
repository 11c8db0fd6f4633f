"""What bears the name and version of a shipped benchmark is that benchmark, wherever it is loaded from."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.raising import raises
from wordnet_splits.base.errors import ManifestError
from wordnet_splits.benchmark.manifest.fingerprint import of_evaluation
from wordnet_splits.benchmark.manifest.loading import manifest_names
from wordnet_splits.benchmark.resolve import find_manifest, load_manifest

Change = Callable[[dict[str, Any]], None]


def copy_of_digits(folder: Path, change: Change, *, sealed: bool = True) -> Path:
    """Copy ``digits`` with another manifest.json, whose evaluation fingerprint fits it where ``sealed``."""
    copied = Path(shutil.copytree(find_manifest("digits"), folder / "digits"))
    data = json.loads((copied / "manifest.json").read_text("utf-8"))
    change(data)
    if sealed:
        data["fingerprints"]["evaluation"] = of_evaluation(data["recipe"], data["groups"])
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
    assert data["fingerprints"]["evaluation"] == of_evaluation(data["recipe"], data["groups"])
