"""Which folders are splits and which are classes: by names, through every door, and for random trees."""

from __future__ import annotations

import tomllib
import unicodedata
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.raising import raises
from tests.wordnet_splits import own_pictures as own
from tests.wordnet_splits.command import Command
from wordnet_splits.base.errors import SourceError
from wordnet_splits.base.names import same_spelling
from wordnet_splits.datasets.catalog import read_catalog
from wordnet_splits.datasets.catalog.declarations import register_declaration
from wordnet_splits.datasets.sources import open_source
from wordnet_splits.datasets.sources.layouts.conventions import class_of, splits_of
from wordnet_splits.datasets.sources.layouts.folders import Parts, read_tree

pytestmark = pytest.mark.usefixtures("own_datasets_forgotten", "no_roots_of_this_machine")


def parts(path: str) -> Parts:
    return tuple(path.split("/")) if path else ()


READ = {
    "no splits": ("zebra teapot", {"all:zebra", "all:teapot"}, ""),
    "splits": ("train/zebra test/zebra", {"train:zebra", "test:zebra"}, ""),
    "one split": ("train/zebra train/teapot", {"train:zebra", "train:teapot"}, ""),
    "one split and class": ("train/zebra", {"train:zebra"}, ""),
    "flat test": ("train/zebra train/dog test", {"train:zebra", "train:dog"}, "test"),
    "tiny-imagenet": ("train/a/images train/b/images val/images", {"train:a", "train:b"}, "val/images"),
    "train is a class": ("bus car train", {"all:bus", "all:car", "all:train"}, ""),
    "trains are classes": ("steam_train bullet_train", {"all:steam_train", "all:bullet_train"}, ""),
    "test tube": ("test_tube beaker", {"all:test_tube", "all:beaker"}, ""),
    "superclass/train": (
        "land/train land/bus sea/ship",
        {"all:land/train", "all:land/bus", "all:sea/ship"},
        "",
    ),
    "container": ("images/zebra images/dog", {"all:zebra", "all:dog"}, ""),
    "container, one class": ("images/zebra", {"all:zebra"}, ""),
    "stray above": ("images images/zebra images/dog", {"all:zebra", "all:dog"}, "images"),
    "stray in a split": (
        "train train/zebra train/dog test/zebra",
        {"train:zebra", "train:dog", "test:zebra"},
        "train",
    ),
    "seen and unseen": (
        "train/a test_seen/a test_unseen/b",
        {"train:a", "test_seen:a", "test_unseen:b"},
        "",
    ),
    "wilds": ("train/a id_val/a ood_test/b", {"train:a", "id_val:a", "ood_test:b"}, ""),
    "only qualified": ("id_val/a ood_val/a", {"id_val:a", "ood_val:a"}, ""),
    "other words": ("training/a validation/a testing/a", {"training:a", "validation:a", "testing:a"}, ""),
    "train in train": (
        "train/train train/bus test/train test/bus",
        {"train:train", "train:bus", "test:train", "test:bus"},
        "",
    ),
    "container in a split": ("train/images/a train/images/b", {"train:a", "train:b"}, ""),
    "twice": ("train/train/zebra train/train/dog test/test", {"train:zebra", "train:dog"}, "test/test"),
    "words, twice": ("training_set/training_set/a test_set/test_set/a", {"training_set:a", "test_set:a"}, ""),
    "letters that sort": ("a/airfield a/alley b/bar", {"all:airfield", "all:alley", "all:bar"}, ""),
    "letters that part": ("a/left a/right b/left", {"all:a/left", "all:a/right", "all:b/left"}, ""),
    "letters": ("A B C", {"all:A", "all:B", "all:C"}, ""),
    "composed": ("train/cafe\u0301 test/caf\u00e9", {"train:caf\u00e9", "test:caf\u00e9"}, ""),
    "deep": ("A/B/C/D/E/F/g A/B/C/D/E/F/h", {"all:g", "all:h"}, ""),
}


@pytest.mark.parametrize("case", READ)
def test_splits_and_classes_are_read(case: str) -> None:
    paths, classes, left = READ[case]
    tree = read_tree(map(parts, paths.split()), None, where="root")
    assert {f"{split}:{'/'.join(rest)}" for split, rest in tree.classes.values()} == classes
    assert ["/".join(path) for path in tree.unclassed] == left.split()


def test_underscores_and_blanks_are_one_class() -> None:
    paths = [("train", "golden_retriever"), ("test", "golden retriever")]
    tree = read_tree(paths, None, where="root")
    assert {rest for _, rest in tree.classes.values()} == {("golden retriever",)}
    with raises(SourceError, where="root"):
        read_tree([*paths, ("train", "golden retriever")], None, where="root")


@pytest.mark.parametrize(
    "paths",
    [
        "train test",  # images of unknown classes
        "train",
        "images",
        "zebra dog test",  # a class, or images of unknown classes
        "bus/coach car/sedan train/steam",
        "train/zebra test/zebra annotations/zebra",
        "train/zebra test/zebra unlabeled",
        "images annotations/trimaps",
        "images/a images/b annotations/a",
        "test_seen/a test_unseen/b",
        "zebra/train zebra/test dog/train dog/test",
        "bottle/train/good bottle/test/bad cable/test/bad cable/truth/bad",
        "train/train test1/test1",
        "seg_train/seg_train/a seg_test/seg_test/a seg_pred/seg_pred",
        "Train/0 Train/1 Meta Test",
        "",
    ],
)
def test_what_names_leave_open_is_asked(paths: str) -> None:
    with pytest.raises(SourceError) as caught:
        read_tree(map(parts, paths.split(" ")), None, where="root")
    assert caught.value.where == "root"
    assert caught.value.hint


@pytest.mark.parametrize(
    "paths",
    ["Train/0 Train/1 Meta Test", "seg_train/seg_train/a seg_test/seg_test/a seg_pred", "images/a masks/a"],
)
def test_the_splits_that_the_hint_gives_have_classes(paths: str) -> None:
    with pytest.raises(SourceError) as caught:
        read_tree(map(parts, paths.split(" ")), None, where="root")
    hint = caught.value.hint or ""
    splits = tomllib.loads(hint[hint.index("splits =") : hint.index("]") + 1])["splits"]
    tree = read_tree(map(parts, paths.split(" ")), splits, where="root")
    assert {split for split, _ in tree.classes.values()} == set(splits)


@pytest.mark.parametrize(
    ("paths", "classes"),
    [
        ("clipart/zebra clipart/axe clipart/art real/zebra real/axe real/art", {"zebra", "axe", "art"}),
        ("animals/cat animals/dog animals/mouse objects/mouse", {"cat", "dog", "mouse"}),
        ("church/indoor church/outdoor bakery/shop", {"church/indoor", "church/outdoor", "bakery/shop"}),
        ("church/ruin mosque/ruin hangar/ruin", {"church/ruin", "mosque/ruin", "hangar/ruin"}),
    ],
)
def test_folders_around_classes_are_superclasses_domains_or_nouns(
    tmp_path: Path, paths: str, classes: set[str]
) -> None:
    from wordnet_splits.linking.classes import classes_below

    own.class_folders(tmp_path / "pics", paths.split(), {"all": 1})
    assert {c.name for c in classes_below(tmp_path / "pics").classes} == classes


@pytest.mark.parametrize("name", ["pics.ZIP", "pics.tar.gz"])
def test_an_archive_without_class_folders_is_named(tmp_path: Path, name: str) -> None:
    from wordnet_splits.linking.classes import classes_below

    (tmp_path / name).touch()
    with raises(SourceError, where=tmp_path / name):
        classes_below(tmp_path)
    own.class_folders(tmp_path, ["zebra", "teapot"], {"train": 1})
    assert {c.name for c in classes_below(tmp_path).classes} == {"zebra", "teapot"}


def test_a_declaration_answers() -> None:
    paths = [("bus", "coach"), ("car", "sedan"), ("train", "steam")]
    none = read_tree(paths, ["all"], where="root")
    assert set(none.classes.values()) == {("all", path) for path in paths}
    assert set(read_tree(paths, ["train"], where="root").classes.values()) == {("train", ("steam",))}
    one = read_tree([("fold 1", "a"), ("fold 1", "b")], ["fold 1"], where="root")
    assert set(one.classes.values()) == {("fold 1", ("a",)), ("fold 1", ("b",))}


@pytest.mark.parametrize(
    ("names", "splits"),
    [
        ("train-0.x test_seen-0.x test_unseen-0.x", "train test_seen test_unseen"),
        ("train.x id_val.x ood_val.x ood_test.x", "train id_val ood_val ood_test"),
        ("data/train-00000-of-00002-ab12.x data/train-00001-of-00002.x", "train train"),
        ("a/instances_train2017.json a/instances_val2017.json", "train val"),
        ("train_annotations.json val_annotations.json", "train val"),
        ("test2015.json test2017.json", "test_2015 test_2017"),
        ("cifar10-train-000.tar cifar10-test-000.tar", "train test"),
        ("validation/0000.x train/0000.x", "val train"),
        ("partial-train/0000.x test/0000.x", "train test"),
        ("valid/_annotations.coco.json train/_annotations.coco.json", "val train"),
        ("train/zebra-0.tar train/dog-0.tar", "train train"),
        ("zebra.tar dog.tar", "all all"),
    ],
)
def test_files_of_splits_stay_apart(names: str, splits: str) -> None:
    assert list(splits_of(map(PurePosixPath, names.split())).values()) == splits.split()


@pytest.fixture
def messy(tmp_path: Path) -> Path:
    """Class folders of two splits beside what programs and people leave there."""
    root = tmp_path / "pics"
    own.class_folders(root, ["zebra", "teapot", "golden_retriever"], {"train": 2})
    own.class_folders(root, ["zebra", "teapot", "golden retriever"], {"test": 2})
    for path in ("__MACOSX/train/zebra", "annotations", "empty", "val", "train/@eaDir/zebra"):
        (root / path).mkdir(parents=True)
    (root / "annotations/zebra.xml").touch()
    for number, path in enumerate(("cover.png", "train/stray.png", "train/@eaDir/zebra/thumb.jpg")):
        own.picture(1000 + number).save(root / path)
    return root


CLASSES = ["golden retriever", "teapot", "zebra"]


def test_every_door_reads_the_same_classes(
    messy: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from wordnet_splits.authoring import folder_benchmark
    from wordnet_splits.explorer import Site
    from wordnet_splits.linking.classes import classes_below

    command = Command(capsys, monkeypatch, tmp_path)
    monkeypatch.setattr(folder_benchmark, "make_site", lambda out, *_, **__: Site(out, (), (), 0, 0))
    found = classes_below(messy)
    assert [c.class_id for c in found.classes] == CLASSES
    assert all(dict(c.counts) == {"train": 2, "test": 2} for c in found.classes)
    assert len(found.notes) == 3  # empty folders, and two places with images of no class
    made = command("benchmark", messy, "--known", "cifar10", "--name", "mine", "--out", "made", "--accept")
    assert made.code == 0, made.err
    assert [c.class_id for c in read_catalog(Path("made/mine.tsv"))] == CLASSES
    own.declare(messy, "mypics", "folders")
    assert command("catalog", "make", "--root", messy, "--out", messy / "mypics.tsv").code == 0
    catalog = read_catalog(messy / "mypics.tsv")
    assert ([c.class_id for c in catalog], catalog.splits) == (CLASSES, ("test", "train"))
    flag = ("--root", f"mypics={messy}")
    states = {
        row["name"]: row["state"] for row in command("sources", "check", *flag, "--json").json["sources"]
    }
    assert states["mypics"] == "complete"
    made = command("sources", "inventory", "mypics", *flag, "--json").json
    assert made["images"] == {"test": 6, "train": 6}
    source = open_source("mypics", messy)
    assert source.count() == {"test": 6, "train": 6}
    assert set(source.unexpected) == {"cover.png", "train/stray.png"}
    new = command("new", "mine", "--id", "mypics:zebra", "--near", "mypics", *flag)
    assert new.code == 0, new.err


def test_numbered_folders_take_their_names_from_a_file(tmp_path: Path) -> None:
    from wordnet_splits.linking.classes import declared_classes

    own.class_folders(tmp_path, ["0", "1"], {"": 1})
    own.declare(tmp_path, "mine", "folders")
    (tmp_path / "classnames.txt").write_text("zebra\nteapot\n", "utf-8")
    found = [(c.class_id, c.name) for c in declared_classes("mine", tmp_path).classes]
    assert found == [("0", "zebra"), ("1", "teapot")]
    (tmp_path / "classnames.txt").write_text("zebra\n", "utf-8")
    with raises(SourceError, where=tmp_path):
        declared_classes("mine", tmp_path)


@pytest.mark.parametrize(
    ("label", "class_id"),
    [
        ("1", "b"),
        (1, "b"),
        ("1.0", "b"),
        (1.0, "b"),
        ("-0", "a"),
        ("1e0", "b"),
        ("b", "b"),
        ("1.0.0", "1.0.0"),
    ]
    + [(label, None) for label in (-1, "-1", "-1.0", "nan", float("nan"), None, "", True)],
)
def test_labels_are_read_as_tables_write_them(label: object, class_id: str | None) -> None:
    assert class_of(label, ("a", "b"), "row 2") == class_id


@pytest.mark.parametrize("label", ["2", 2.0, "0.5", ".5", "1e3", "inf", "9" * 5000])
def test_numbers_without_a_name_are_refused(label: object) -> None:
    with raises(SourceError, where="row 2"):
        class_of(label, ("a", "b"), "row 2")


def test_a_recipe_takes_all_test_splits_unless_one_is_plain(tmp_path: Path) -> None:
    from wordnet_splits.authoring.drafting import draft_recipe, parse_group

    own.declare(tmp_path, "mine", "folders")
    register_declaration(tmp_path, "mine")
    for splits, taken in (
        ("Train test_seen test_unseen", ["Train", ["test_seen", "test_unseen"]]),
        ("train test test_unseen", ["train", "test"]),
        ("training valid", ["training", "valid"]),
    ):
        own.catalog(tmp_path / "mine.tsv", CLASSES, dict.fromkeys(splits.split(), 1))
        recipe = tomllib.loads(draft_recipe("mine", parse_group("mine", where="--id")))
        images = recipe["group"][0]["images"]
        assert [images["train"]["from"], images["test"]["from"]] == taken


SPLIT_NAMES = [
    "train",
    "test",
    "val",
    "valid",
    "Training",
    "test_seen",
    "test_unseen",
    "id_val",
    "ood-test",
    "dev 2",
]
CLASS_NAMES = ["zebra", "golden retriever", "caf\u00e9", "7", "A", "B", "test_tube", "train", "Train station"]
NAMES = st.sampled_from(
    [*SPLIT_NAMES, *CLASS_NAMES, "images", "annotations", "a", "golden_retriever", "cafe\u0301"]
)


@pytest.mark.fuzz
@pytest.mark.always
@settings(max_examples=100)
@given(
    splits=st.lists(st.sampled_from(SPLIT_NAMES), min_size=2, unique=True),
    classes=st.lists(st.sampled_from(CLASS_NAMES), min_size=2, unique=True),
    data=st.data(),
)
def test_whatever_lies_beside_them_splits_and_classes_stay(
    splits: list[str], classes: list[str], data: st.DataObject
) -> None:
    spelt = st.sampled_from(
        (str, lambda name: name.replace(" ", "_"), lambda name: unicodedata.normalize("NFD", name))
    )
    paths = [(split, data.draw(spelt)(name)) for split in splits for name in classes]
    strays = data.draw(
        st.lists(st.sampled_from([(), *((split,) for split in splits), ("test_flat",)]), unique=True)
    )
    tree = read_tree([*paths, *strays], None, where="root")
    expected = {(split, (same_spelling(name),)) for split in splits for name in classes}
    assert {(split, tuple(map(same_spelling, rest))) for split, rest in tree.classes.values()} == expected
    assert sorted(tree.unclassed) == sorted(strays)
    assert len({rest for _, rest in tree.classes.values()}) == len(classes)


@pytest.mark.fuzz
@pytest.mark.always
@settings(max_examples=100)
@given(st.lists(st.lists(NAMES, max_size=4).map(tuple), unique=True, max_size=8))
def test_no_two_folders_of_a_split_become_one_class(paths: Sequence[Parts]) -> None:
    try:
        tree = read_tree(paths, None, where="root")
    except SourceError:
        return
    assert len(set(tree.classes.values())) == len(tree.classes)
    assert {*tree.classes, *tree.unclassed} == set(paths)
    assert all(all(rest) for _, rest in tree.classes.values())
