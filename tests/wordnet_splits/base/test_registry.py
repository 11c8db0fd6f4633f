"""The registry: shipped objects, those of users and of other packages, and their names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from wordnet_splits.base.errors import DataError, UnknownNameError
from wordnet_splits.base.registry import Registry

MODULE = """
from shipped_shapes_registry import SHAPES

@SHAPES.register({name!r}, aliases={aliases!r})
def shape():
    "A shape."
"""


@pytest.fixture
def shapes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry[Any]:
    """A registry with one shipped object, ``square``, whose alias is ``box``."""
    folder = tmp_path / "shipped_shapes"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "square.py").write_text(MODULE.format(name="square", aliases=["box"]))
    made: Registry[Any] = Registry("shape", "shipped_shapes", "tests.shapes")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(__import__("sys").modules, "shipped_shapes_registry", _Module(made))
    for name in ("shipped_shapes", "shipped_shapes.square"):
        __import__("sys").modules.pop(name, None)
    return made


class _Module:
    def __init__(self, made: Registry[Any]) -> None:
        self.SHAPES = made


def test_the_folder_is_imported_on_first_use(shapes: Registry[Any]) -> None:
    assert not shapes._entries
    assert "square" in shapes
    assert (list(shapes), shapes.names("b*"), shapes["box"]) == (["square"], ("square",), shapes["square"])


def test_an_unknown_name_offers_similar_ones(shapes: Registry[Any]) -> None:
    with pytest.raises(UnknownNameError) as caught:
        shapes.find("sqare", where="--shape", near=["first"])
    assert caught.value.where == "--shape"
    assert caught.value.near == ("first", "square")


@pytest.mark.parametrize("name", ["square", "box"])
def test_a_shipped_object_is_not_replaced(shapes: Registry[Any], name: str) -> None:
    for names in ({"name": name}, {"name": "mine", "aliases": [name]}):
        with pytest.raises(DataError):
            shapes.register(**names)(len)  # type: ignore[arg-type]
    assert shapes["square"].__module__ == "shipped_shapes.square"


def test_an_object_of_a_user_is_replaced_with_a_warning(shapes: Registry[Any]) -> None:
    shapes.register("round", aliases=["disc"])(len)
    with pytest.warns(UserWarning, match="round") as caught:
        shapes.register("round")(max)
    assert caught[0].filename == __file__
    assert shapes["round"] is max
    assert "disc" not in shapes


@pytest.mark.parametrize("name", ["", "a b", "a,b", "a:b", "a[b]", "a\n"])
def test_a_name_that_no_list_could_hold_is_refused(shapes: Registry[Any], name: str) -> None:
    for names in ({"name": name}, {"name": "mine", "aliases": [name]}):
        with pytest.raises(DataError):
            shapes.register(**names)(len)  # type: ignore[arg-type]


def test_other_packages_add_objects(shapes: Registry[Any], tmp_path: Path, isolated: Any) -> None:
    (tmp_path / "of_package.py").write_text(MODULE.format(name="ring", aliases=[]))
    points = {
        "ring": "of_package:shape",
        "square": "of_package:shape",
        "broken": "no_such_module:shape",
        "misnamed": "of_package:shape",
    }
    isolated(shapes, [*points.items(), ("twice", "a:b"), ("twice", "c:d")])
    with pytest.warns(UserWarning, match="'square' of another package is ignored"):
        assert shapes.names() == ("broken", "misnamed", "ring", "square", "twice")
    assert shapes["ring"].__module__ == "of_package"
    assert shapes.is_shipped("square")
    for name, where in {
        "broken": "no_such_module:shape",
        "misnamed": "of_package:shape",
        "twice": "a:b, c:d",
    }.items():
        with pytest.raises(DataError) as caught:
            shapes[name]
        assert caught.value.where == where
    with pytest.warns(UserWarning, match="left out"):
        assert set(shapes.entries()) == {"ring", "square"}
