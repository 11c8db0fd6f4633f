"""Roots: a flag wins over the environment, that over roots.toml; what is wrong is said with its place."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.raising import mentions, raises
from tests.wordnet_splits.datasets.sources.layout_table import DTD, OPENOOD, TINY_VAL, files, openood
from tests.wordnet_splits.datasets.sources.trees import flat, in_class_folders
from wordnet_splits.base import errors
from wordnet_splits.benchmark.images.raw_images import open_sources
from wordnet_splits.datasets.sources import open_source, roots
from wordnet_splits.datasets.sources.roots import read_roots_file


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty config folder, and an environment without roots."""
    monkeypatch.setattr("platformdirs.user_config_path", lambda name: tmp_path / name)
    for key in [key for key in os.environ if key.startswith("WORDNET_SPLITS_ROOT_")]:
        monkeypatch.delenv(key)
    folder = tmp_path / "wordnet-splits"
    folder.mkdir()
    return folder


def write(config: Path, text: str) -> None:
    (config / "roots.toml").write_text(text, "utf-8")


def test_nothing_configured_is_no_root() -> None:
    assert roots.resolve_root("dtd") is None
    assert roots.resolve_root("dtd", {"svhn": Path("/svhn")}) is None
    assert roots.all_roots() == {}


def test_one_folder_is_no_table_of_roots() -> None:
    for read in (roots.all_roots, lambda given: open_sources(["dtd"], given, {})):
        with raises(errors.SourceError, where="roots", naming="/data"):
            read("/data")


def test_all_wrong_roots_are_named_at_once(tmp_path: Path) -> None:
    given = {"dtd": tmp_path / "gone", "svhn": tmp_path / "away"}
    with raises(errors.SourceError, naming=("gone", "away")):
        open_sources(["dtd", "svhn"], given, {})
    with raises(errors.SourceError, where="gone"):
        open_sources(["dtd"], given, {})


def test_the_order_is_flag_environment_file(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(config, 'tiny-imagenet = "/file"\n')
    assert roots.resolve_root("tiny-imagenet") == Path("/file")
    monkeypatch.setenv("WORDNET_SPLITS_ROOT_TINY_IMAGENET", "/environment")
    assert roots.resolve_root("tiny-imagenet") == Path("/environment")
    assert roots.resolve_root("tiny-imagenet", {"tiny-imagenet": Path("/flag")}) == Path("/flag")


def test_an_empty_variable_is_none(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(config, 'dtd = "/file"\n')
    monkeypatch.setenv("WORDNET_SPLITS_ROOT_DTD", "")
    assert roots.resolve_root("dtd") == Path("/file")


def test_home_and_relative_paths(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    write(config, 'dtd = "~/dtd"\nsvhn = "data/svhn"\n')
    assert roots.resolve_root("dtd") == Path("/home/somebody/dtd")
    assert roots.resolve_root("svhn") == config / "data" / "svhn"
    assert roots.resolve_root("food101", {"food101": Path("~/food")}) == Path("/home/somebody/food")


def test_all_roots_in_the_order_of_the_sources(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(config, 'svhn = "/svhn"\nimagenet1k = "/imagenet"\n')
    monkeypatch.setenv("WORDNET_SPLITS_ROOT_CIFAR100", "/cifar")
    found = roots.all_roots({"dtd": Path("/dtd")})
    assert list(found) == ["imagenet1k", "cifar100", "svhn", "dtd"]
    assert found["cifar100"] == Path("/cifar")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("dtd = /data", ()),
        ('dtd = "/a"\ndtd = "/b"\n', ()),
        ("dtd = 3\n", ("dtd", "3")),
        ('dtd = ""\n', ()),
        ('cifar-100 = "/c"\n', "cifar100"),
        ('[dtd]\nroot = "/d"\n', ()),
        ('dtd = "~nobody-at-all/d"\n', "~nobody-at-all/d"),
        ("a = " + "[" * 500 + "]" * 500, ()),
        ("a = " + "1" * 5000, ()),
        ("a." * 50_000 + "b = 1", ()),
    ],
)
def test_a_malformed_file_is_named(text: str, said: object, config: Path) -> None:
    write(config, text)
    for ask in (lambda: roots.resolve_root("dtd"), roots.all_roots):
        with pytest.raises(errors.SplitsError) as caught:
            ask()
        assert mentions(str(caught.value), said)
        assert str(config / "roots.toml") in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_file_that_is_no_text_is_named(config: Path) -> None:
    (config / "roots.toml").write_bytes(b"\xff\xfe\x00")
    with raises(errors.SourceError, where="roots.toml"):
        roots.resolve_root("dtd")


def test_unknown_names_are_refused_wherever_they_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    with raises(errors.UnknownNameError, near="places365"):
        roots.resolve_root("places")
    with raises(errors.UnknownNameError, where="--root", naming="places"):
        roots.all_roots({"places": Path("/p")})
    monkeypatch.setenv("WORDNET_SPLITS_ROOT_PLACES", "/p")
    with raises(errors.UnknownNameError, where="WORDNET_SPLITS_ROOT_PLACES"):
        roots.all_roots()


def test_the_home_of_nobody_is_named() -> None:
    with raises(errors.SourceError, where="--root", naming="~nobody-at-all/d"):
        roots.resolve_root("dtd", {"dtd": Path("~nobody-at-all/d")})


REPOSITORY = Path(__file__).resolve().parents[4]
COMING_FROM = (REPOSITORY / "docs" / "coming-from.md").read_text(encoding="utf-8")
SOURCES = REPOSITORY / "wordnet_splits"
OPENOOD_FOLDERS = re.compile(r"images_(?:classic|largescale)/(\w+)")
OTHER_NAMES = {
    "dtd": "texture",
    "tiny-imagenet": "tin",
    "imagenet1k": "imagenet_1k",
    "openood-species": "species_sub",
}


def test_one_data_folder_is_the_root_of_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (block,) = re.findall(r"```toml\n(# roots.toml\n.*?)```", COMING_FROM, re.DOTALL)
    (tmp_path / "roots.toml").write_text(block, encoding="utf-8")
    roots = read_roots_file(tmp_path / "roots.toml")
    data = tmp_path / "OpenOOD" / "data"
    assert set(roots.values()) == {data}
    code = ("data/trees.toml", "datasets/sources/imagenet.py")
    known = {name for path in code for name in OPENOOD_FOLDERS.findall((SOURCES / path).read_text("utf-8"))}
    for name in roots:
        assert OTHER_NAMES.get(name, name.removeprefix("openood-").replace("-", "_")) in known

    rows = {**OPENOOD, "dtd": DTD, "tiny-imagenet": TINY_VAL}
    for source in OPENOOD:
        openood(source).write(data)
    files(*in_class_folders(DTD, "images_classic/texture", extension="jpg"))(data)
    files(*flat(TINY_VAL, "images_classic/tin/val/images"))(data)
    for name, expected in rows.items():
        scanned = {
            tuple(row.values())
            for batch in open_source(name, roots[name]).scan()
            for row in batch.to_pylist()
        }
        assert scanned == expected, name
