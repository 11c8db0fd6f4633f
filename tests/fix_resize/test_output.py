"""An output of a build is read image by image, each compared with its hash."""

from __future__ import annotations

import io
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from PIL import Image

from fix_resize import apply, get_spec
from fix_resize.output import IMAGE_SCHEMA, decode_png, open_output
from fix_resize.pipeline.building import PipelineSettings, build
from fix_resize.pipeline.selection import select_folder
from fix_resize.pipeline.writing import encode_png
from tests.fix_resize.sets import make_folder
from tests.raising import raises
from wordnet_splits.base.errors import DataError, MissingImageError, OutputError

SIDES = array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=40)

FIX = get_spec("fix")


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    return make_folder(tmp_path / "pictures")


def made(root: Path, out: Path, file_format: str = "png") -> None:
    build(select_folder(root), out, PipelineSettings(FIX, file_format, shard_size=4))


def test_an_output_is_picklable_and_says_what_it_lacks(pictures: Path, tmp_path: Path) -> None:
    made(pictures, tmp_path / "out", file_format="parquet")
    output = open_output(tmp_path / "out")
    assert "class-0/picture 000" in output
    copy = pickle.loads(pickle.dumps(output))
    np.testing.assert_array_equal(copy.pixels("class-2/picture 002"), output.pixels("class-2/picture 002"))
    with raises(MissingImageError, where="out", naming="class-0/x"):
        output.pixels("class-0/x")
    with pytest.raises(MissingImageError):
        output.pixels("class-2/picture 002", source="lsun")
    with raises(OutputError, where="pictures"):
        open_output(pictures)
    assert output.table.schema.equals(IMAGE_SCHEMA)


def test_changed_pixels_are_not_handed_out(pictures: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    made(pictures, out)
    shutil.copy(out / "class-1" / "picture 001.png", out / "class-0" / "picture 000.png")
    (out / "class-0" / "picture 003.png").write_bytes(b"")
    output = open_output(out)
    with raises(DataError, where="000.png"):
        output.pixels("class-0/picture 000")
    with raises(DataError, where="003.png"):
        output.pixels("class-0/picture 003")


def test_a_folder_of_the_same_name_that_was_built_anew_is_read_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in ("here", "there", "here"):
        (tmp_path / place).mkdir(exist_ok=True)
        monkeypatch.chdir(tmp_path / place)
        shutil.rmtree("pictures", ignore_errors=True)
        Path("pictures").mkdir()
        noise = np.random.default_rng(len(list(tmp_path.rglob("*")))).integers(0, 256, (40, 40, 3), np.uint8)
        Image.fromarray(noise).save("pictures/a.png")
        made(Path("pictures"), Path("out"), file_format="parquet")
        expected = apply(FIX, Image.fromarray(noise))
        np.testing.assert_array_equal(open_output(Path("out")).pixels("a"), expected)


def test_what_is_no_such_picture_is_named() -> None:
    whole = encode_png(np.zeros((8, 8, 3), np.uint8), "x")
    grey = io.BytesIO()
    Image.new("L", (8, 8)).save(grey, "PNG")
    for data in (b"", b"x", whole[:-40], whole[:-1], whole + b"\0", grey.getvalue()):
        with raises(DataError, where="file.png"):
            decode_png(data, "file.png")


@given(
    SIDES.flatmap(lambda size: arrays(np.uint8, (*size, 3), elements=st.sampled_from([0, 1, 127, 254, 255])))
)
def test_any_picture_is_read_back(pixels: np.ndarray) -> None:
    data = encode_png(pixels, "0123456789ab")
    with Image.open(io.BytesIO(data)) as image:
        image.load()
        assert (image.format, image.mode, image.info["resize-spec"]) == ("PNG", "RGB", "0123456789ab")
        np.testing.assert_array_equal(np.asarray(image), pixels)
    np.testing.assert_array_equal(decode_png(data, "here"), pixels)


def test_opencv_reads_it_too() -> None:
    cv2 = pytest.importorskip("cv2")
    pixels = np.random.default_rng(5).integers(0, 256, (33, 20, 3), dtype=np.uint8)
    read = cv2.imdecode(np.frombuffer(encode_png(pixels, "x"), np.uint8), cv2.IMREAD_COLOR)
    np.testing.assert_array_equal(read[:, :, ::-1], pixels)


def test_a_smooth_picture_is_small() -> None:
    ramp = np.add.outer(np.arange(32), np.arange(32)).astype(np.uint8)
    assert len(encode_png(np.stack([ramp] * 3, axis=2), "0123456789ab")) < 32 * 32 * 3 / 5
