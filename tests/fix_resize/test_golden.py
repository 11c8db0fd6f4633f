"""What `fix` makes of real images is frozen: the same pixels on Pillow 11, 12 and 13, for ever."""

from __future__ import annotations

from pathlib import Path

import pytest

from fix_resize.spec import get_spec
from tools.golden_tables import FOLDER, TABLES, Row, combined, compute, frozen

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
