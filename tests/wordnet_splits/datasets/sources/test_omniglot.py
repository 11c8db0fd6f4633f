"""Omniglot: zips in place and folders, two archives that share classes, and every bad archive."""

from __future__ import annotations

import pickle
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from tests.raising import raises
from tests.wordnet_splits.datasets.sources.trees import (
    ANGELIC,
    OTHER,
    ScanRows,
    as_folder,
    as_zip,
    digests,
    drawing,
    scan,
)
from wordnet_splits.base.errors import SourceError
from wordnet_splits.datasets.catalog.inventory import load_inventory
from wordnet_splits.datasets.sources import open_source

SMALL = ("images_background_small1", "images_background_small2")
GREEK = ["Greek/character01/0394_01", "Greek/character01/0394_02", "Greek/character02/0395_07"]
KOREAN = ["Korean/character01/0540_01"]
TAGALOG = ["Tagalog/character17/0912_20"]


Write = Callable[[Path, str, Iterable[str]], None]
WRITERS = pytest.mark.parametrize("write", [as_zip, as_folder])


def rows(split: str, *ids: list[str]) -> ScanRows:
    return sorted((i, i.rsplit("/", 1)[0], split) for some in ids for i in some)


@pytest.fixture
def known(real_data: Path) -> list[str]:
    """Real ids of the small sets: Greek is in both archives."""
    with zipfile.ZipFile(real_data / "omniglot" / f"{SMALL[0]}.zip") as archive:
        names = [n.partition("/")[2].removesuffix(".png") for n in archive.namelist() if n.endswith(".png")]
    return [n for n in names if n.startswith(("Greek/character01", "Korean/character01"))]


@WRITERS
@pytest.mark.parametrize("below", ["", "omniglot-py"])
def test_evaluation_and_the_whole_background_set(tmp_path: Path, write: Write, below: str) -> None:
    small = ["Balinese/character01/0108_01"]
    write(tmp_path / below, "images_background", [*small, *OTHER])
    write(tmp_path / below, "images_evaluation", [*ANGELIC, *OTHER])  # a character of the other set
    source = open_source("omniglot", tmp_path)
    wanted = rows("background-small", small) + rows("background-other", OTHER) + rows("evaluation", ANGELIC)
    assert scan(source) == sorted(wanted)
    assert source.count() == {"background-small": 1, "background-other": 1, "evaluation": 2}
    assert sum(source.unexpected.values()) == 1
    raw = source.read([ANGELIC[1]])[0]
    assert raw == drawing(ANGELIC[1])
    assert source.decode(raw).size == (105, 105)
    again = pickle.loads(pickle.dumps(source))
    assert again.read(ANGELIC) == source.read(ANGELIC)


@WRITERS
def test_the_two_small_sets_are_one(tmp_path: Path, write: Write, known: list[str]) -> None:
    write(tmp_path, SMALL[0], known)
    write(tmp_path, SMALL[1], [i for i in known if i.startswith("Greek")])
    source = open_source("omniglot", tmp_path)
    assert scan(source) == rows("background-small", known)
    assert source.read(known) == [drawing(i) for i in known]
    (tmp_path / f"{SMALL[0]}.zip").unlink(missing_ok=True)
    if write is as_zip:
        alone = open_source("omniglot", tmp_path)
        assert scan(alone) == rows("background-small", [i for i in known if i.startswith("Greek")])


ENTRY = f"images_evaluation/{ANGELIC[0]}.png"


def test_two_entries_of_one_name(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "images_evaluation.zip", "w") as archive:
        archive.writestr(ENTRY, drawing(ANGELIC[0]))
        archive.writestr(ENTRY.replace(".png", ".PNG"), drawing(ANGELIC[1]))
    source = open_source("omniglot", tmp_path)
    with raises(SourceError, where="images_evaluation.zip"):
        scan(source)
    with raises(SourceError, where="images_evaluation.zip", naming="2"):
        source.read([ANGELIC[0]])


def test_the_real_archives_are_read_as_torchvision_reads_them(
    real_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    datasets = pytest.importorskip("torchvision.datasets")
    root = tmp_path / "omniglot-py"
    for name in SMALL:
        with zipfile.ZipFile(real_data / "omniglot" / f"{name}.zip") as archive:
            archive.extractall(tmp_path / "unpacked")
        (tmp_path / "unpacked" / name).rename(tmp_path / name)
    root.mkdir()
    (tmp_path / SMALL[1]).rename(root / "images_background")  # torchvision has one background folder
    monkeypatch.setattr(datasets.Omniglot, "_check_integrity", lambda self: True)  # it wants the zip, too
    reader = datasets.Omniglot(str(tmp_path), background=True)
    source = open_source("omniglot", real_data / "omniglot")
    assert source.count() == {"background-small": 4840, "background-other": 0, "evaluation": 0}
    assert source.unexpected == {}
    ids = [
        f"{reader._characters[label]}/{name.removesuffix('.png')}"
        for name, label in reader._flat_character_images
    ]
    assert len(ids) == 3120
    for index in range(0, len(ids), 400):
        raw = source.read([ids[index]])[0]
        assert source.decode(raw).tobytes() == reader[index][0].convert("RGB").tobytes()
    assert set(ids) <= {row[0] for row in scan(source)}


def test_real_drawings_have_the_shipped_digests(real_data: Path) -> None:
    table = load_inventory("omniglot", "background-small")
    assert table is not None
    ids = table["image_id"].to_pylist()[::97]
    found = digests(open_source("omniglot", real_data / "omniglot"), ids)
    assert found == table["digest"].to_pylist()[::97]
