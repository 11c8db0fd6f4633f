"""Every backend gives the bytes that Pillow gives."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import PIL
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from PIL import Image, ImageOps

from fix_resize import oracle, resize
from fix_resize.resize import BACKENDS, apply, apply_many, backend_names, pillow_resize, resize_and_crop
from fix_resize.spec import CenterCrop, Resize, ResizeSpec, Step, get_spec, plan
from fix_resize.windows import FILTERS, first_axis, passes, windows
from tests.fix_resize.made_images import Case, Pixels, random_cases, random_picture
from tests.imported import Imported
from tests.raising import raises
from tests.selection import cases
from tools.golden_tables import FOLDER, TABLES, Row, combined, compute, frozen
from wordnet_splits.base.errors import DataError, SplitsError, UnknownNameError

kernel = Imported("fix_resize.kernel")

CASES = 2000
FIX = get_spec("fix")


def pillow(picture: Pixels, size: tuple[int, int], filter_name: str) -> Pixels:
    """Return what the installed Pillow gives in one call."""
    return np.asarray(Image.fromarray(picture).resize(size[::-1], Image.Resampling[filter_name.upper()]))


def test_numpy_equals_the_installed_pillow_in_2000_random_cases() -> None:
    differing = 0
    for picture, size, name in random_cases(CASES, seed=0):
        first = first_axis(PIL.__version__, picture.shape[:2], size)
        differing += int((oracle.resample(picture, size, name, first) != pillow(picture, size, name)).sum())
    assert differing == 0


def test_numba_equals_pillow_in_2000_random_cases() -> None:
    differing = 0
    for case in random_cases(CASES, seed=1):
        expected = np.asarray(pillow_resize(Image.fromarray(case.picture), case.size, case.filter_name))
        differing += int((kernel.resample_step(case.picture, case.step()) != expected).sum())
    assert differing == 0


def test_many_images_are_resized_and_cropped_as_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    axes = []
    for picture, size, name in random_cases(400, seed=5):
        top = size[0] // 4
        step = Step(Resize(1, name), picture.shape[:2], size, (top, 0), (size[0] - top, size[1]))
        for mode in ("RGB", "L"):
            image = Image.fromarray(picture).convert(mode)
            whole = image.resize(size[::-1], Image.Resampling[name.upper()])
            for start in (1 << 40, 0):
                monkeypatch.setattr(resize, "COMPILED_FROM", start)
                np.testing.assert_array_equal(resize_and_crop(image, step), np.asarray(whole)[top:])
        axes.append(first_axis(PIL.__version__, picture.shape[:2], size))
    assert "vertical" in axes or PIL.__version__ < "13"


def test_numba_computes_only_what_a_crop_keeps() -> None:
    rng = np.random.default_rng(2)
    for case in random_cases(300, seed=3):
        (tall, wide), step = case.size, case.step()
        height, width = int(rng.integers(1, tall + 1)), int(rng.integers(1, wide + 1))
        top, left = int(rng.integers(0, tall - height + 1)), int(rng.integers(0, wide - width + 1))
        cropped = kernel.resample_step(
            case.picture, step._replace(corner=(top, left), crop_size=(height, width))
        )
        whole = oracle.resample(case.picture, case.size, case.filter_name)
        np.testing.assert_array_equal(cropped, whole[top : top + height, left : left + width])


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    sizes=st.tuples(*[st.integers(1, 130)] * 4),
    name=st.sampled_from(sorted(FILTERS)),
    seed=st.integers(0, 2**16),
    extremes=st.booleans(),
)
@example(sizes=(1, 1, 130, 130), name="lanczos", seed=0, extremes=True)
@example(sizes=(130, 130, 1, 1), name="bicubic", seed=0, extremes=True)
@example(sizes=(130, 20, 20, 19), name="hamming", seed=0, extremes=False)
def test_any_sizes(sizes: tuple[int, int, int, int], name: str, seed: int, extremes: bool) -> None:
    height, width, tall, wide = sizes
    picture = random_picture(np.random.default_rng(seed), height, width, extremes=extremes)
    first = first_axis(PIL.__version__, (height, width), (tall, wide))
    expected = pillow(picture, (tall, wide), name)
    np.testing.assert_array_equal(oracle.resample(picture, (tall, wide), name, first), expected)
    spec_order = np.asarray(pillow_resize(Image.fromarray(picture), (tall, wide), name))
    np.testing.assert_array_equal(oracle.resample(picture, (tall, wide), name), spec_order)
    compiled = kernel.resample_step(picture, Case(picture, (tall, wide), name).step())
    np.testing.assert_array_equal(compiled, spec_order)
    if first == "horizontal":
        np.testing.assert_array_equal(spec_order, expected)


@pytest.mark.parametrize("first", ["horizontal", "vertical"])
def test_passes_come_in_the_order_asked_for(first: str) -> None:
    rng = np.random.default_rng(4)
    for height, width, tall, wide in [
        (120, 30, 20, 60),
        (30, 120, 60, 20),
        (90, 40, 30, 13),
        (40, 90, 13, 30),
    ]:
        picture = random_picture(rng, height, width)
        by_pillow = np.asarray(pillow_resize(Image.fromarray(picture), (tall, wide), "bicubic", first))
        np.testing.assert_array_equal(by_pillow, oracle.resample(picture, (tall, wide), "bicubic", first))


def test_the_order_of_passes_matters_and_changed_in_pillow_13() -> None:
    picture = random_picture(np.random.default_rng(5), 900, 300)  # a tall photograph, scaled down by fix
    orders = [oracle.resample(picture, (768, 256), "bilinear", axis) for axis in ("horizontal", "vertical")]
    assert (orders[0] != orders[1]).any()
    assert first_axis("12.3.0", (900, 300), (768, 256)) == "horizontal"
    assert first_axis("13.0.0", (900, 300), (768, 256)) == "vertical"
    assert first_axis("13.0.0", (600, 300), (512, 256)) == "horizontal"  # exactly twice: not more than twice
    assert first_axis("13.0.0", (100, 300), (200, 256)) == "horizontal"


def test_a_spec_means_horizontally_first_on_every_pillow() -> None:
    picture = random_picture(np.random.default_rng(6), 900, 300)
    assert (apply(FIX, Image.fromarray(picture)) == oracle.apply_batch(FIX, picture[None])[0]).all()


@pytest.mark.oracle
@pytest.mark.parametrize("backend", cases(["numpy", "numba", "torch"], always="numba"))
def test_backends_equal_pillow_on_the_photographs(
    backend: str, photographs: Callable[[], Iterator[list[Image.Image]]]
) -> None:
    if backend == "torch":
        pytest.importorskip("torch")
    for batch in photographs():
        np.testing.assert_array_equal(apply_many(FIX, batch, backend=backend), apply_many(FIX, batch))


@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize("name", ["fix-64", "fix-direct"])
def test_every_exact_spec_on_awkward_sizes(name: str, backend: str) -> None:
    rng = np.random.default_rng(7)
    sizes = [(1, 1), (1, 40), (40, 1), (31, 33), (64, 64), (256, 256), (256, 300), (257, 511), (700, 90)]
    pictures = [random_picture(rng, *size) for size in sizes]
    np.testing.assert_array_equal(
        apply_many(get_spec(name), pictures, backend=backend), apply_many(get_spec(name), pictures)
    )


def test_every_filter_may_stand_in_a_spec() -> None:
    rng = np.random.default_rng(8)
    pictures = [random_picture(rng, 90, 120, extremes=True), random_picture(rng, 120, 90)]
    outputs = []
    for name in FILTERS:
        spec = ResizeSpec("mine", (Resize(40, name), CenterCrop(36), Resize(9, name)))
        outputs.append(apply_many(spec, pictures))
        for backend in ("numpy", "numba"):
            np.testing.assert_array_equal(apply_many(spec, pictures, backend=backend), outputs[-1])
    assert len({each.tobytes() for each in outputs}) == len(FILTERS)


def test_a_batch_does_not_depend_on_its_neighbours() -> None:
    rng = np.random.default_rng(9)
    batch = rng.integers(0, 256, (70, 40, 50, 3), dtype=np.uint8)  # more than one block
    together = apply_many(FIX, batch, backend="numba")
    np.testing.assert_array_equal(together[[3, 69]], apply_many(FIX, batch[[3, 69]]))
    np.testing.assert_array_equal(
        apply_many(FIX, batch[:, :, ::-1], backend="numba")[0], apply(FIX, Image.fromarray(batch[0, :, ::-1]))
    )
    assert apply_many(FIX, batch[:0], backend="numba").shape == (0, 32, 32, 3)


def test_weights_sum_to_one_and_fit_32_bits() -> None:
    for name in FILTERS:
        for sizes in [(256, 32), (375, 256), (32, 256), (1999, 7), (7, 1999)]:
            along = windows(*sizes, name)
            totals = along.weights.astype(np.int64).sum(axis=1)
            assert (
                np.abs(totals - (1 << 22)) <= along.counts
            ).all()  # each weight is rounded by a half at most
            assert (np.abs(along.weights.astype(np.int64)).sum(axis=1) * 255 + (1 << 21) < 1 << 31).all()


def test_a_pass_reads_only_the_rows_it_needs() -> None:
    step = plan(FIX, 1000, 3000)[0]
    assert passes(step).input_rows == slice(0, 1000)
    used = passes(step._replace(corner=(100, 0), crop_size=(10, 256))).input_rows
    assert 35 < used.stop - used.start < 60  # ten rows of four, and the filter's reach


def test_wrong_images_and_backends_are_named() -> None:
    picture = np.zeros((8, 8, 3), np.uint8)
    with raises(UnknownNameError, near="numba"):
        apply_many(FIX, [picture], backend="numbra")
    with pytest.raises(DataError):
        apply(FIX, Image.new("L", (8, 8)))
    for backend in ("pillow", "numba"):
        with pytest.raises(DataError):
            apply_many(FIX, [picture.astype(np.float32)], backend=backend)
        with pytest.raises(DataError):
            apply_many(FIX, [picture[:, :, 0]], backend=backend)
    with raises(SplitsError, where="'clean'", naming="pillow-float"):
        apply_many(get_spec("clean"), [picture], backend="numba")
    with raises(UnknownNameError, near="bilinear"):
        windows(8, 8, "bilinera")
    with raises(DataError, naming="16777216"):
        windows(0, 8, "box")


def test_an_absent_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BACKENDS, "absent", ("no_such_library_here", "fast"))
    assert "absent" in backend_names()
    with raises(SplitsError, naming=("no_such_library_here", "fast")):
        apply_many(FIX, [np.zeros((8, 8, 3), np.uint8)], backend="absent")


def test_fast_libraries_are_imported_on_request_only() -> None:
    code = "import sys, fix_resize.resize; print({'torch', 'numba', 'cv2'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize("backend", ["pillow", "numpy", "numba", "torch"])
def test_every_backend_gives_what_pillow_gives_of_the_inverted_drawing(backend: str) -> None:
    if backend in ("numba", "torch"):
        pytest.importorskip(backend)
    drawings = np.random.default_rng(0).integers(0, 2, (3, 105, 105, 1), dtype=np.uint8) * np.uint8(255)
    pixels = np.repeat(drawings, 3, axis=3)
    made = apply_many(get_spec("inverted-28"), pixels, backend)
    images = [ImageOps.invert(Image.fromarray(one)) for one in pixels]
    wanted = [np.asarray(image.resize((28, 28), Image.Resampling.BILINEAR)) for image in images]
    assert np.array_equal(made, np.stack(wanted))
    assert np.array_equal(made[0], apply(get_spec("inverted-28"), Image.fromarray(pixels[0])))


def test_white_paper_becomes_black() -> None:
    paper = Image.new("RGB", (105, 105), "white")
    assert not apply(get_spec("inverted-28"), paper).any()


IMAGES = {"imagenet": 200, "dtd": 60, "tiny-imagenet-val": 10_000}


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.oracle if n == "tiny-imagenet-val" else ()) for n in sorted(TABLES)],
)
def test_real_images_decode_and_resize_to_the_frozen_pixels(name: str, real_data: Path) -> None:
    assert compute(name, real_data) == frozen(name)


@pytest.mark.parametrize("name", TABLES)
def test_frozen_tables_are_whole(name: str) -> None:
    *rows, last = frozen(name)
    assert last.images == sum(row.images for row in rows) == IMAGES[name]
    assert last == combined("all", rows)
    assert get_spec("fix").id in (FOLDER / f"{name}.tsv").read_text(encoding="utf-8").splitlines()[0]


def test_a_combined_hash_sees_every_change_and_no_order() -> None:
    rows = [Row("a", 1, "00", "01"), Row("b", 1, "02", "03")]
    assert combined("all", rows) == combined("all", rows[::-1])
    for changed in (Row("b", 1, "02", "04"), Row("c", 1, "02", "03")):
        assert combined("all", [rows[0], changed]).fix != combined("all", rows).fix
