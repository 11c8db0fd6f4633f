"""Specs: their geometry, their ids, and what they say of themselves."""

from __future__ import annotations

import json
import pickle

import pytest

from fix_resize.decode import UndecodableImageError
from fix_resize.spec import SPECS, CenterCrop, Resize, ResizeSpec, get_spec, plan, spec_names
from tests.raising import raises
from wordnet_splits.base.errors import DataError, UnknownNameError

# Frozen: an id stands in the metadata of every set that was built, so it never changes under a name.
IDS = {
    "fix": "ad4d845582a5",
    "fix-64": "a692f774f9c6",
    "fix-direct": "edaa7dba4c7a",
    "clean": "83e6e1ef44a2",
    "inverted-28": "33b5786f332b",
    "nearest": "508d047363d4",
    "opencv-bilinear": "7ba89a83e4ec",
    "tensor-bilinear-no-antialias": "6cd9f2840c1b",
}
SIDES = {"fix-64": 64, "inverted-28": 28}


def test_ids_are_frozen() -> None:
    assert {name: spec.id for name, spec in SPECS.items()} == IDS


def test_the_id_holds_what_determines_pixels_and_nothing_else() -> None:
    fix = get_spec("fix")
    assert ResizeSpec("mine", fix.stages, about="the same recipe under another name").id == fix.id
    changes = [
        ResizeSpec("fix", (*fix.stages[:2], Resize(33))),
        ResizeSpec("fix", (*fix.stages[:2], Resize(32, "box"))),
        ResizeSpec("fix", (*fix.stages[:2], Resize(32, antialias=False))),
        ResizeSpec("fix", (*fix.stages[:2], Resize(32, engine="tensor"))),
        ResizeSpec("fix", fix.stages, colour="rgb-2"),
    ]
    assert len({spec.id for spec in [fix, *changes]}) == len(changes) + 1


@pytest.mark.parametrize("name", spec_names())
def test_a_description_is_json_and_reads_back(name: str) -> None:
    spec = get_spec(name)
    description = json.loads(json.dumps(spec.describe()))
    assert ResizeSpec.from_description(description) == spec
    assert pickle.loads(pickle.dumps(spec)).id == spec.id
    assert {"pillow", "libjpeg_turbo"} <= set(description["libraries"])
    assert description["output"]["height"] == spec.side == SIDES.get(name, 32)


def test_a_description_that_was_altered_is_refused() -> None:
    description = get_spec("fix").describe()
    for change, message in [
        ({"id": "0" * 12}, ()),
        ({"colour": "rgb-2"}, ()),
        ({"schema": 9}, ("schema", "9")),
        ({"stages": [{"op": "rotate"}]}, ()),
        ({"stages": [{"op": "resize", "size": 32, "sharpen": True}]}, ()),
    ]:
        with raises(DataError, where="'fix'", naming=message):
            ResizeSpec.from_description({**description, **change})


@pytest.mark.parametrize(
    "change",
    [
        *({"stages": stages} for stages in ("fix", ["fix"], [["op"]], 7, None, [{"op": []}])),
        *({"output": output} for output in (None, "png", {"height": 10**15}, {"height": 32, "width": 33})),
    ],
    ids=str,
)
def test_a_description_of_other_types_or_sizes_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(DataError) as refused:
        ResizeSpec.from_description({**get_spec("fix").describe(), **change})
    assert refused.value.where == "resize spec 'fix'"


def test_unknown_names_offer_the_nearest() -> None:
    with raises(UnknownNameError, near="bicubic"):
        Resize(32, "bicubci")
    with raises(UnknownNameError, near="opencv"):
        Resize(32, engine="opencvv")
    with raises(UnknownNameError, near="fix-64"):
        get_spec("fix64")


def test_broken_specs_are_marked_and_replace_only_the_last_stage() -> None:
    broken = set(spec_names()) - set(spec_names(broken=False))
    assert broken == {"nearest", "opencv-bilinear", "tensor-bilinear-no-antialias"}
    for name in broken:
        assert get_spec(name).study_only
        assert get_spec(name).stages[:-1] == get_spec("fix").stages[:-1]
        assert get_spec(name).stages[-1].size == 32


@pytest.mark.parametrize(
    ("size", "resized", "corner"),
    [
        ((375, 500), (256, 341), (0, 42)),  # 341.33 -> 341; (341 - 256) / 2 = 42.5 -> 42, halves to even
        ((500, 375), (341, 256), (42, 0)),
        ((333, 500), (256, 384), (0, 64)),
        ((256, 259), (256, 259), (0, 2)),  # 1.5 -> 2
        ((256, 257), (256, 257), (0, 0)),  # 0.5 -> 0
        ((64, 64), (256, 256), (0, 0)),  # enlarged
        ((3, 7), (256, 597), (0, 170)),  # 597.33; 170.5 -> 170
        ((256, 256), (256, 256), (0, 0)),
    ],
)
def test_geometry_by_hand(size: tuple[int, int], resized: tuple[int, int], corner: tuple[int, int]) -> None:
    first, last = plan(get_spec("fix"), *size)
    assert (first.in_size, first.out_size, first.corner, first.crop_size) == (
        size,
        resized,
        corner,
        (256, 256),
    )
    assert (last.in_size, last.out_size, last.corner) == ((256, 256), (32, 32), (0, 0))


def test_geometry_is_torchvisions() -> None:
    functional = pytest.importorskip(
        "torchvision.transforms.functional", reason="torchvision is not installed"
    )
    from PIL import Image

    for height, width in [
        (375, 500),
        (500, 375),
        (1, 9),
        (300, 301),
        (257, 511),
        (4, 4),
        (769, 256),
        (97, 63),
    ]:
        step = plan(get_spec("fix"), height, width)[0]
        image = functional.resize(Image.new("RGB", (width, height)), 256, antialias=True)
        assert (image.height, image.width) == step.out_size
        (top, left), marked = step.corner, Image.new("L", image.size)
        marked.putpixel((left, top), 255)
        assert functional.center_crop(marked, 256).getpixel((0, 0)) == 255


def test_thin_pictures_are_quarantined() -> None:
    with pytest.raises(UndecodableImageError) as caught:
        plan(get_spec("fix"), 1, 2000)
    assert caught.value.reason == "aspect"
    assert plan(get_spec("fix"), 1, 1300)  # 256 x 332,800 pixels: still allowed


@pytest.mark.parametrize(
    "stages",
    [
        (),
        (CenterCrop(32), Resize(32)),
        (Resize(32),),
        (Resize(32), CenterCrop(64)),
        (Resize(64), CenterCrop(32), CenterCrop(16)),
        (Resize(0), CenterCrop(0)),
    ],
)
def test_impossible_specs_are_refused(stages: tuple[Resize | CenterCrop, ...]) -> None:
    with raises(DataError, where="'mine'"):
        ResizeSpec("mine", stages)
