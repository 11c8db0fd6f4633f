"""docs/coming-from.md: OpenOOD's data folder is the root of every source in the page's ``roots.toml``."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.wordnet_splits.datasets.sources.layout_table import DTD, OPENOOD, TINY_VAL, files, openood
from tests.wordnet_splits.datasets.sources.trees import flat, in_class_folders
from wordnet_splits.datasets.sources import open_source
from wordnet_splits.datasets.sources.roots import read_roots_file

REPOSITORY = Path(__file__).resolve().parents[4]
PAGE = (REPOSITORY / "docs" / "coming-from.md").read_text(encoding="utf-8")
SOURCES = REPOSITORY / "wordnet_splits"
OPENOOD_FOLDERS = re.compile(r"images_(?:classic|largescale)/(\w+)")
OTHER_NAMES = {"dtd": "texture", "tiny-imagenet": "tin", "imagenet1k": "imagenet_1k"}


def test_one_data_folder_is_the_root_of_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (block,) = re.findall(r"```toml\n(# roots.toml\n.*?)```", PAGE, re.DOTALL)
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
