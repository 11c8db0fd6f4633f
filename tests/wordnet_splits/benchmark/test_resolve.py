"""Names and paths of benchmarks: a bare name refers to a frozen one, a path to a folder."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.raising import raises
from tests.wordnet_splits.command import Command
from wordnet_splits.base.errors import ManifestError, UnknownNameError
from wordnet_splits.benchmark.image_sets import open_images
from wordnet_splits.benchmark.resolve import declarations_of, find_manifest, find_recipe, load_manifest

FROZEN = find_manifest("digits")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory that holds other benchmarks, as ``digits`` and as ``mine``."""
    other = find_manifest("rungs-cifar100")
    for name in ("digits", "mine", "wild/wild"):
        shutil.copytree(other, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("here")
def test_a_folder_does_not_take_the_place_of_a_frozen_benchmark() -> None:
    assert find_manifest("digits") == FROZEN
    assert load_manifest("digits").name == "digits"
    assert find_recipe("digits").name == "digits"
    assert declarations_of("digits") == {}
    assert load_manifest("./digits").name == "rungs-cifar100"
    assert find_recipe("./digits").name == "rungs-cifar100"
    assert find_manifest(Path("digits")) == Path("digits")  # a path is a path, however short


def test_paths_are_written_as_such(here: Path) -> None:
    for path in ("./mine", "../" + here.name + "/mine", str(here / "mine")):
        assert load_manifest(path).name == "rungs-cifar100"
    with raises(ManifestError, where=".", naming="manifest.json"):
        find_manifest(".")
    with raises(UnknownNameError, naming="./their"):
        find_manifest("./their")
    with raises(UnknownNameError, naming="./mines") as refused:
        find_manifest("./mines")
    assert refused.value.near[0] == "./mine"


@pytest.mark.usefixtures("here")
def test_a_bare_folder_is_offered_as_a_path() -> None:
    for look in (find_manifest, load_manifest, find_recipe, lambda name: open_images(f"{name}:rung-0")):
        with pytest.raises(UnknownNameError) as refused:
            look("mine")
        assert "./mine" in (refused.value.hint or "")
    for look in (find_manifest, find_recipe):  # as `benchmark --out wild` writes it
        with raises(UnknownNameError, naming="./wild/wild"):
            look("wild")
    with pytest.raises(UnknownNameError) as refused:
        find_manifest("their")
    assert "the folder here" not in str(refused.value.hint)


def test_commands_and_loaders_name_benchmarks_alike(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    splits = Command(capsys, monkeypatch, here)
    for words in (
        ["verify", "mine"],
        ["explain", "mine", "bee"],
        ["export", "mine", "--format", "csv", "--out", "x"],
    ):
        assert splits(*words).error
    assert splits("diff", "digits", "./digits").code == 1
    pytest.importorskip("torch")
    from loaders import UnknownDetectionSet

    assert UnknownDetectionSet("digits", role="near").manifest.folder == FROZEN
    with raises(UnknownNameError, naming="mine"):
        UnknownDetectionSet("mine")


@pytest.mark.usefixtures("here")
def test_pictures_of_a_bare_name_are_those_of_the_frozen_benchmark() -> None:
    assert len(open_images("digits:digits-6-9").ids) == 714
