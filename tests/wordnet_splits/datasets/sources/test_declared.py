"""Datasets of a user's own: three layouts, and what a newcomer gets wrong, each in one line."""

from __future__ import annotations

import hashlib
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.raising import mentions, raises
from tests.wordnet_splits import own_pictures as own
from wordnet_splits.base import errors
from wordnet_splits.benchmark.construct.digesting import read_digests
from wordnet_splits.datasets.catalog import load_catalog
from wordnet_splits.datasets.catalog.declarations import register_declaration
from wordnet_splits.datasets.sources import Source, open_source, source_info, source_names
from wordnet_splits.datasets.sources.layouts import layout as layouts
from wordnet_splits.datasets.sources.roots import all_roots

pytestmark = pytest.mark.usefixtures("own_datasets_forgotten", "no_roots_of_this_machine")

CLASSES = ["acoustic guitar", "golden retriever", "teapot", "zebra"]


def rows(source: Source) -> list[tuple[str, str, str]]:
    """Return (image_id, class_id, split), sorted."""
    found = [row for batch in source.scan() for row in batch.to_pylist()]
    return sorted((row["image_id"], row["class_id"], row["split"]) for row in found)


@pytest.fixture
def pics(tmp_path: Path) -> Path:
    """Class folders of two splits, declared."""
    root = tmp_path / "pics"
    own.class_folders(root, CLASSES, {"train": 3, "test": 2})
    own.catalog(root / "mypics.tsv", CLASSES, {"train": 3, "test": 2})
    own.declare(root, "mypics", "folders")
    return root


def test_class_folders_are_read_as_torchvision_reads_them(pics: Path) -> None:
    datasets = pytest.importorskip("torchvision.datasets", reason="the oracle is torchvision's reader")
    source = open_source("mypics", pics)
    assert source.splits == ("train", "test")
    assert source.count() == {"train": 12, "test": 8}
    found = rows(source)
    for split in source.splits:
        folder = datasets.ImageFolder(str(pics / split))
        ours = [row for row in found if row[2] == split]
        paths = [Path(path) for path, _ in folder.samples]
        assert [(i, c) for i, c, _ in ours] == sorted(
            (f"{split}/{path.parent.name}/{path.stem}", path.parent.name) for path in paths
        )
        for (image, _), path in zip(folder, paths, strict=True):
            image_id = f"{split}/{path.parent.name}/{path.stem}"
            raw = source.read([image_id])[0]
            assert np.array_equal(np.asarray(source.decode(raw)), np.asarray(image))
            assert source.digest(raw) == hashlib.sha256(path.read_bytes()).digest()
            assert source.file(image_id) == path
    assert load_catalog("mypics").source == "mypics"
    assert "mypics" in source_names()
    assert str(pics / "dataset.toml") in source_info("mypics").how


def test_a_worker_that_is_sent_a_source_need_not_know_its_declaration(pics: Path, monkeypatch: Any) -> None:
    sent = pickle.dumps(open_source("mypics", pics))
    monkeypatch.setattr("wordnet_splits.datasets.catalog.declarations._REGISTERED", {})
    assert "mypics" not in source_names()
    assert len(rows(pickle.loads(sent))) == 20


def test_without_splits_folders_above_all_classes_are_passed_over(tmp_path: Path) -> None:
    own.class_folders(tmp_path / "images", ["zebra", "Äpfel und Birnen"], {"": 2})
    own.catalog(tmp_path / "flat.tsv", ["zebra", "Äpfel und Birnen"], {"all": 2})
    own.declare(tmp_path, "flat", "folders")
    (tmp_path / "images" / "zebra" / "notes.txt").write_text("x")
    source = open_source("flat", tmp_path)
    assert [row[0] for row in rows(source)] == [
        "zebra/picture 0",
        "zebra/picture 1",
        "Äpfel und Birnen/picture 0",
        "Äpfel und Birnen/picture 1",
    ]
    assert source.unexpected == {"images/zebra/notes.txt": 1}


def test_images_in_folders_of_every_script_are_read(tmp_path: Path) -> None:
    names = ["hot\u00a0dog", "میوه\u200cها"]
    own.class_folders(tmp_path / "images", names, {"": 1})
    own.catalog(tmp_path / "flat.tsv", names, {"all": 1})
    own.declare(tmp_path, "flat", "folders")
    assert [row[0] for row in rows(open_source("flat", tmp_path))] == [f"{name}/picture 0" for name in names]


@pytest.mark.parametrize("split", [True, False])
def test_a_table(tmp_path: Path, split: bool) -> None:
    listed = [(f"a/{n}.png", CLASSES[n % 4], ("fit", "probe")[n % 2]) for n in range(8)]
    head = ("file", "label", "split") if split else ("file", "label")
    own.table(tmp_path, [row[: len(head)] for row in listed], head)
    counts = {"fit": 1, "probe": 1} if split else {"all": 2}
    own.catalog(tmp_path / "mine.tsv", CLASSES, counts)
    own.declare(tmp_path, "mine", "csv")
    (tmp_path / "a" / "3.png").unlink()
    source = open_source("mine", tmp_path)
    assert rows(source) == [
        (path[:-4], class_id, part if split else "all")
        for path, class_id, part in listed
        if path != "a/3.png"
    ]
    assert source.unexpected == {"a/3.png": 1}
    assert source.read(["a/5"]) == [(tmp_path / "a" / "5.png").read_bytes()]


def test_columns_of_other_names_and_tabs(tmp_path: Path) -> None:
    (tmp_path / "one.png").write_bytes(b"")
    own.picture(1).save(tmp_path / "one.png")
    (tmp_path / "list.tsv").write_text("wo\twas\none.png\tzebra\n", "utf-8")
    own.catalog(tmp_path / "mine.tsv", ["zebra"], {"all": 1})
    own.declare(tmp_path, "mine", "csv", 'images = "list.tsv"\ncolumns = { image = "wo", class = "was" }\n')
    assert rows(open_source("mine", tmp_path)) == [("one", "zebra", "all")]


@pytest.mark.parametrize("named", [True, False])
def test_parquet_as_the_datasets_library_saves_it(tmp_path: Path, named: bool) -> None:
    datasets = pytest.importorskip("datasets", reason="it writes what is read here")
    features = datasets.Features({"img": datasets.Image(), "label": datasets.ClassLabel(names=CLASSES)})
    pictures = tmp_path / "pictures"
    own.class_folders(pictures, CLASSES, {"": 2})
    files = sorted(pictures.glob("*/*.png"))
    root = tmp_path / "data"
    for word in ("train", "validation"):
        images = [{"bytes": f.read_bytes(), "path": f.name if named else None} for f in files]
        labels = [CLASSES.index(f.parent.name) for f in files]
        saved = datasets.Dataset.from_dict({"img": images, "label": labels}, features=features)
        (root / "data").mkdir(parents=True, exist_ok=True)
        saved.to_parquet(str(root / "data" / f"{word}-00000-of-00001.parquet"))
    own.catalog(root / "saved.tsv", CLASSES, {"train": 2, "val": 2})
    own.declare(root, "saved", "parquet", "lossless = true\n")
    source = open_source("saved", root)
    expected = [
        (f"{split}/{f.parent.name}/{f.stem}" if named else f"{split}/{n}", f.parent.name, split)
        for split in ("train", "val")
        for n, f in enumerate(files)
    ]
    assert rows(source) == sorted(expected)
    for n, (image_id, _, _) in enumerate(expected[: len(files)]):
        raw = source.read([image_id])[0]
        assert raw == files[n].read_bytes()
        pixels = np.asarray(source.decode(raw))
        head = np.array(pixels.shape[:2], "<u4").tobytes()
        assert source.digest(raw) == hashlib.sha256(head + pixels.tobytes()).digest()


def test_numbers_are_classes_only_where_they_have_names(tmp_path: Path) -> None:
    from wordnet_splits.linking.classes import declared_classes

    pictures = []
    for number in range(3):
        own.picture(number).save(tmp_path / "one.png")
        pictures.append((tmp_path / "one.png").read_bytes())
    held = pa.table({"image": pictures, "label": [1, 0, 1], "boxes": [[1], [2], [3]]})
    pq.write_table(held, tmp_path / "test.parquet")
    own.catalog(tmp_path / "mine.tsv", ["teapot", "zebra"], {"test": 2})
    own.declare(tmp_path, "mine", "parquet")
    with raises(errors.SourceError, where="test.parquet"):
        declared_classes("mine", tmp_path)
    (tmp_path / "classnames.txt").write_text("zebra\nteapot\nokapi\n", "utf-8")
    expected = [("test/0", "teapot", "test"), ("test/1", "zebra", "test"), ("test/2", "teapot", "test")]
    assert rows(open_source("mine", tmp_path)) == expected
    found = declared_classes("mine", tmp_path)
    assert [c.class_id for c in found.classes] == ["zebra", "teapot"]
    assert [mentions(note, 1, "okapi") for note in found.notes] == [True]
    own.declare(tmp_path, "mine", "parquet", 'columns = { class = "boxes" }\n')
    with raises(errors.SourceError, where="test.parquet", naming="boxes"):
        declared_classes("mine", tmp_path)
    own.table(tmp_path, [("one.png", "1")], ("file", "label"))
    own.declare(tmp_path, "mine", "csv")
    assert [c.class_id for c in declared_classes("mine", tmp_path).classes] == ["teapot"]
    (tmp_path / "classnames.txt").unlink()
    with raises(errors.SourceError, where="labels.csv, row 2"):
        declared_classes("mine", tmp_path)


@pytest.mark.parametrize("layout", ["csv", "parquet"])
def test_two_labels_of_one_name_are_refused(tmp_path: Path, layout: str) -> None:
    from wordnet_splits.linking.classes import declared_classes

    own.table(tmp_path, [("a.png", "0"), ("b.png", "2")], ("file", "label"))
    pictures = [(tmp_path / name).read_bytes() for name in ("a.png", "b.png")]
    pq.write_table(pa.table({"image": pictures, "label": [0, 2]}), tmp_path / "test.parquet")
    own.declare(tmp_path, "mine", layout)
    (tmp_path / "classnames.txt").write_text("crane\nzebra\ncrane\n", "utf-8")
    with raises(errors.SourceError, where="classnames.txt", naming=("2", "crane")):
        declared_classes("mine", tmp_path)
    (tmp_path / "classnames.txt").write_text("crane\n\ncrane (machine)\n\n", "utf-8")
    assert [c.class_id for c in declared_classes("mine", tmp_path).classes] == ["crane", "crane (machine)"]


@pytest.mark.parametrize(
    "columns",
    [
        {"image": [1, 2]},
        {"image": [[b"x"], [b"y"]]},
        {"image": [{"path": "a"}, {"path": "b"}]},
        {"image": [{"bytes": 1}, {"bytes": 2}]},
    ],
)
def test_parquet_whose_image_column_holds_no_images(tmp_path: Path, columns: Any) -> None:
    from wordnet_splits.linking.classes import declared_classes

    pq.write_table(pa.table(columns | {"label": ["zebra", "teapot"]}), tmp_path / "test.parquet")
    own.declare(tmp_path, "mine", "parquet")
    with raises(errors.SourceError, where="test.parquet"):
        declared_classes("mine", tmp_path)


@pytest.mark.parametrize("name", ["label", "image", "split"])
def test_two_columns_of_one_name_are_refused(tmp_path: Path, name: str) -> None:
    from wordnet_splits.linking.classes import declared_classes

    (tmp_path / "parquet").mkdir()
    names, cells = ["image", "label", "split", name], ["a.png", "zebra", "test", "zebra"]
    pq.write_table(pa.table([[c] for c in cells], names=names), tmp_path / "parquet" / "test.parquet")
    own.table(tmp_path / "csv", [tuple(cells)], tuple(names))
    for layout in ("parquet", "csv"):
        own.declare(tmp_path / layout, "mine", layout)
        with raises(errors.SourceError, naming=name) as caught:
            declared_classes("mine", tmp_path / layout)
        assert caught.value.where


@pytest.mark.parametrize("split", ["te\tst", "te\nst", "", " "])
def test_a_split_that_no_catalog_could_hold_is_refused(tmp_path: Path, split: str) -> None:
    from wordnet_splits.linking.classes import declared_classes

    cells = ("a.png", "zebra", split)
    own.table(tmp_path, [cells], ("image", "label", "split"))
    held = {"image": [(tmp_path / "a.png").read_bytes()], "label": ["zebra"], "split": [split]}
    pq.write_table(pa.table(held), tmp_path / "data.parquet")
    for layout in ("csv", "parquet"):
        own.declare(tmp_path, "mine", layout)
        with raises(errors.DataError, where=tmp_path):
            declared_classes("mine", tmp_path)


def test_other_delimiters_are_named(tmp_path: Path) -> None:
    from wordnet_splits.linking.classes import declared_classes

    for head, name in (
        ("image;label", "labels.csv"),
        ("image\tlabel", "labels.csv"),
        ("image,label", "labels.tsv"),
    ):
        (tmp_path / name).write_text(f"{head}\n", "utf-8")
        own.declare(tmp_path, "mine", "csv", f'images = "{name}"\n')
        with raises(errors.SourceError, where=name):
            declared_classes("mine", tmp_path)


LAYOUT = """
from wordnet_splits.datasets.sources.layouts import DeclaredLayout, Image, register_layout

@register_layout("reversed")
class Reversed(DeclaredLayout):
    about = "<ssalc>.png"

    def images(self, note, splits):
        for path in self.root.glob("*.png"):
            yield Image(path.stem, path.stem[::-1], "all", (path.name,))

    def read(self, location):
        return (self.root / location[0]).read_bytes()

register_layout("wrong")(str)
"""


def test_another_package_adds_a_layout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, isolated: Any
) -> None:
    monkeypatch.syspath_prepend(tmp_path / "plugin")
    (tmp_path / "plugin").mkdir()
    (tmp_path / "plugin" / "reversed_layout.py").write_text(LAYOUT)
    points = [
        ("reversed", "reversed_layout:Reversed"),
        ("broken", "no_such_module:Layout"),
        ("wrong", "reversed_layout:str"),
    ]
    isolated(layouts.LAYOUTS, points)
    own.picture(0).save(tmp_path / "arbez.png")
    own.catalog(tmp_path / "mine.tsv", ["zebra"], {"all": 1})
    own.declare(tmp_path, "mine", "reversed")
    assert rows(open_source("mine", tmp_path)) == [("arbez", "zebra", "all")]
    own.declare(tmp_path, "mine", "broken")
    with raises(errors.DataError, where="no_such_module:Layout", naming="broken"):
        open_source("mine", tmp_path)
    own.declare(tmp_path, "mine", "wrong")
    with raises(errors.DataError, where="dataset.toml", naming=("wrong", "str")):
        open_source("mine", tmp_path)


def test_a_variable_or_roots_toml_finds_the_declaration(pics: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORDNET_SPLITS_ROOT_MYPICS", str(pics))
    assert all_roots() == {"mypics": pics}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('name = "mypics"\nlayout = "folders"\n', "catalog"),
        ('name = "mypics"\nlayout = "folder"\ncatalog = "mypics.tsv"\n', "folder"),
        ('name = "My Pics"\nlayout = "folders"\ncatalog = "m.tsv"\n', "name"),
        ('name = "mypics"\nlayout = "folders"\ncatalog = "../m.tsv"\n', "../m.tsv"),
        ('name = "mypics"\nlayout = "folders"\ncatalog = "none.tsv"\n', "--root"),
        ('name = "mypics"\nlayout = "folders"\ncatalog = "mypics.tsv"\nsplits = ["tset"]\n', "'test'"),
        ('name = "mypics"\nlayout = "csv"\ncatalog = "mypics.tsv"\n', ".csv"),
        ('name = "mypics"\nlayout = "parquet"\ncatalog = "mypics.tsv"\n', ()),
        ('name = "mypics"\nlayout = "folders"\ncatlog = "mypics.tsv"\n', "catalog"),
        ("name = mypics\n", ()),
    ],
)
def test_a_wrong_declaration_is_refused_in_one_line(pics: Path, text: str, said: object) -> None:
    (pics / "dataset.toml").write_text(text, "utf-8")
    with pytest.raises(errors.SplitsError) as caught:
        rows(open_source("mypics", pics))
    assert mentions(caught.value.line(), said)
    assert "\n" not in caught.value.line()
    assert str(pics) in caught.value.line()


def test_a_declared_dataset_of_another_name_is_named(pics: Path) -> None:
    with raises(errors.DataError, where="dataset.toml", naming=("mypics", "--root")):
        open_source("pics", pics)


def test_a_shipped_name_is_never_taken_over(pics: Path) -> None:
    own.declare(pics, "dtd", "folders")
    register_declaration(pics, "dtd")
    assert "Textures" in source_info("dtd").title
    with raises(errors.SourceError, where="pics", naming="dtd"):
        open_source("dtd", pics)


def test_an_undeclared_folder_says_what_to_write(tmp_path: Path) -> None:
    own.class_folders(tmp_path, CLASSES, {"": 1})
    with pytest.raises(errors.UnknownNameError) as caught:
        open_source("mypics", tmp_path)
    assert mentions(caught.value.line(), tmp_path, "dataset.toml")


def test_declared_splits_are_folders_whatever_their_names(tmp_path: Path) -> None:
    from wordnet_splits.linking.classes import declared_classes

    own.class_folders(tmp_path, ["zebra", "teapot"], {"fold 1": 2, "fold 2": 1, "thumbnails": 3})
    own.declare(tmp_path, "folds", "folders", 'splits = ["fold 1", "fold 2"]\n')
    found = declared_classes("folds", tmp_path)
    assert found.splits == ("fold 1", "fold 2")
    assert {c.class_id: dict(c.counts) for c in found.classes} == {
        "teapot": {"fold 1": 2, "fold 2": 1},
        "zebra": {"fold 1": 2, "fold 2": 1},
    }
    own.catalog(tmp_path / "folds.tsv", ["zebra", "teapot"], {"fold 1": 2, "fold 2": 1})
    assert open_source("folds", tmp_path).count() == {"fold 1": 4, "fold 2": 2}


def test_two_images_of_one_id_are_refused(pics: Path) -> None:
    own.picture(99).save(pics / "test" / "zebra" / "picture 0.jpg")
    with raises(errors.SourceError, where="pics", naming="mypics"):
        open_source("mypics", pics).count()


def test_a_folder_of_no_class_is_counted(pics: Path) -> None:
    own.class_folders(pics, ["okapi"], {"test": 2, "train": 0})
    source = open_source("mypics", pics)
    assert source.count() == {"train": 12, "test": 8}
    assert source.unexpected == {"class okapi": 2}


def _lfs(picture: Path) -> None:
    picture.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n")


def _annex(picture: Path) -> None:
    picture.write_text("/annex/objects/SHA256E-s1--00.png\n")


def _broken_link(picture: Path) -> None:
    picture.symlink_to("../.git/annex/objects/absent.png")


def _dvc(picture: Path) -> None:
    picture.with_name(picture.name + ".dvc").touch()


@pytest.mark.parametrize(
    ("replace", "command"),
    [(_lfs, "git lfs pull"), (_annex, "git annex get"), (_broken_link, "git annex get"), (_dvc, "dvc pull")],
)
def test_a_image_kept_elsewhere_is_counted_and_the_command_that_fetches_it_is_named(pics, replace, command):
    from wordnet_splits.linking.classes import classes_below

    picture = pics / "train" / "zebra" / "picture 0.png"
    assert picture.is_file()
    picture.unlink()
    replace(picture)
    source = open_source("mypics", pics)
    assert source.count() == {"train": 12, "test": 8}
    assert classes_below(pics).classes[-1].counts == {"train": 3, "test": 2}
    _, (problem,) = read_digests(source, {"train/zebra/picture 0": "zebra"}, {})
    assert (problem.kind, problem.image_id) == ("unreadable", "train/zebra/picture 0")
    assert command in problem.detail


def test_companions_of_images_are_not_unexpected(pics):
    for name in ("README.md", "Thumbs.db", "picture 0.png.dvc", ".gitattributes"):
        (pics / "train" / "zebra" / name).touch()
    (pics / "train" / "zebra" / "notes.txt").touch()
    source = open_source("mypics", pics)
    assert len(rows(source)) == 20
    assert list(source.unexpected) == ["train/zebra/notes.txt"]
