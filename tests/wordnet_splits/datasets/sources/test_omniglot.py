"""Omniglot: zips in place and folders, two archives that share classes, and every bad archive."""

from __future__ import annotations

import pickle
import stat
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from tests.raising import mentions, raises
from wordnet_splits.base.errors import MissingImageError, SourceError, SplitsError, UnsafeDataError
from wordnet_splits.datasets.catalog.inventory import load_inventory
from wordnet_splits.datasets.sources import open_source

from .cifar_copies import Rows, digests, scan
from .published_files import ANGELIC, OTHER, as_folder, as_zip, drawing

SMALL = ("images_background_small1", "images_background_small2")
GREEK = ["Greek/character01/0394_01", "Greek/character01/0394_02", "Greek/character02/0395_07"]
KOREAN = ["Korean/character01/0540_01"]
TAGALOG = ["Tagalog/character17/0912_20"]


Write = Callable[[Path, str, Iterable[str]], None]
WRITERS = pytest.mark.parametrize("write", [as_zip, as_folder])


def rows(split: str, *ids: list[str]) -> Rows:
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


@WRITERS
def test_absent_drawings_are_named(tmp_path: Path, write: Write) -> None:
    write(tmp_path, "images_evaluation", ANGELIC)
    source = open_source("omniglot", tmp_path)
    ids = (
        "Angelic/character01/0965_02",
        "Angelic/character03/0967_01",
        *OTHER,
        "../x/0965_01",
        "Angelic",
        "",
    )
    for image_id in ids:
        with raises(MissingImageError, where=tmp_path, naming="omniglot"):
            source.read([image_id])


def test_an_empty_root_and_another_dataset(tmp_path: Path) -> None:
    with raises(SourceError, where=tmp_path):
        open_source("omniglot", tmp_path)
    as_folder(tmp_path, "images_elsewhere", ANGELIC)
    with raises(SourceError, where=tmp_path, naming=("omniglot", "images_background")):
        open_source("omniglot", tmp_path)


def refused(root: Path) -> SplitsError:
    def read() -> None:
        source = open_source("omniglot", root)
        source.read([row[0] for row in scan(source)])

    with pytest.raises(SplitsError) as caught:
        read()
    assert "\n" not in str(caught.value)
    assert "images_evaluation.zip" in str(caught.value)
    return caught.value


@pytest.mark.parametrize("cut", [0, 1, 100, -1, -30])
def test_truncated_archives(tmp_path: Path, cut: int) -> None:
    as_zip(tmp_path, "images_evaluation", ANGELIC)
    path = tmp_path / "images_evaluation.zip"
    path.write_bytes(path.read_bytes()[:cut])
    refused(tmp_path)


def test_a_drawing_altered_in_the_archive(tmp_path: Path) -> None:
    as_zip(tmp_path, "images_evaluation", ANGELIC)
    path = tmp_path / "images_evaluation.zip"
    data = bytearray(path.read_bytes())
    at = data.index(b"0966_20.png") + 60
    data[at : at + 20] = bytes(20)
    path.write_bytes(bytes(data))
    refused(tmp_path)


ENTRY = f"images_evaluation/{ANGELIC[0]}.png"


def entry(name: str = ENTRY, **fields: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    for key, value in fields.items():
        setattr(info, key, value)
    return info


@pytest.mark.parametrize(
    ("info", "why"),
    [
        (entry("/etc/passwd"), ()),
        (entry(f"images_evaluation/../../{ANGELIC[0]}.png"), ()),
        (entry(f"images_evaluation\\{ANGELIC[0]}.png"), ()),
        (entry("x" * 2000), "2,000"),
        (entry(external_attr=(stat.S_IFLNK | 0o777) << 16), ()),
        (entry(external_attr=(stat.S_IFIFO | 0o666) << 16), ()),
        (entry(compress_type=zipfile.ZIP_LZMA), ()),
    ],
)
def test_hostile_entries(tmp_path: Path, info: zipfile.ZipInfo, why: object) -> None:
    with zipfile.ZipFile(tmp_path / "images_evaluation.zip", "w") as archive:
        archive.writestr(info, drawing(ANGELIC[0]))
    found = refused(tmp_path)
    assert isinstance(found, UnsafeDataError)
    assert mentions(str(found), why)


def test_a_drawing_that_would_expand_to_gigabytes(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "images_evaluation.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(ENTRY, bytes(130 << 20))
    assert isinstance(refused(tmp_path), UnsafeDataError)


def test_two_entries_of_one_name(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "images_evaluation.zip", "w") as archive:
        archive.writestr(ENTRY, drawing(ANGELIC[0]))
        archive.writestr(ENTRY.replace(".png", ".PNG"), drawing(ANGELIC[1]))
    source = open_source("omniglot", tmp_path)
    with raises(SourceError, where="images_evaluation.zip"):
        scan(source)
    with raises(SourceError, where="images_evaluation.zip", naming="2"):
        source.read([ANGELIC[0]])


def test_a_link_out_of_the_root(tmp_path: Path) -> None:
    as_zip(tmp_path / "elsewhere", "images_evaluation", ANGELIC)
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "images_evaluation.zip").symlink_to(tmp_path / "elsewhere" / "images_evaluation.zip")
    with raises(UnsafeDataError, where="images_evaluation.zip"):
        open_source("omniglot", tmp_path / "root")


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
