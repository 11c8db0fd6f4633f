"""``docs/evidence/robust.md`` holds what ``docs/robust.parquet`` gives, and that what the readings give."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tools.audits.page import filled
from tools.robustness.page import THERE, tables
from wordnet_splits.benchmark.recipe import buildable
from wordnet_splits.studies.robust import robust_roles

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "evidence" / "robust.md"
PARQUET = ROOT / "docs" / "robust.parquet"
FEW = ("digits", "rungs-cifar100", "osc-p2", "unknown-cifar-clean", "places-inter")


@pytest.fixture(scope="module")
def kept() -> pa.Table:
    return pq.read_table(PARQUET)


def test_the_page_holds_what_the_parquet_gives(kept: pa.Table) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page.splitlines() == filled(page, tables(kept)).splitlines()
    assert set(kept["benchmark"].to_pylist()) == set(buildable())


@pytest.mark.parametrize("name", FEW)
def test_the_parquet_holds_what_is_computed(name: str, kept: pa.Table) -> None:
    ours = robust_roles(name, wordnets=[]).to_table()
    of = kept.filter(pc.field("benchmark") == name)
    for column in ours.column_names:
        if column not in ("robust", "why"):  # the share counts WordNet 3.1, too
            assert of[column].to_pylist() == ours[column].to_pylist(), column


def test_the_parquet_holds_what_31_gives(kept: pa.Table, real_data: Path) -> None:
    folder = real_data / "wordnet-3.1"
    if not folder.is_dir():
        pytest.skip(f"WordNet 3.1 is not at {folder}")
    found = robust_roles("rungs-cifar100", wordnets=[folder])
    assert found.unmapped == {THERE: 0}
    assert found.to_table().equals(kept.filter(pc.field("benchmark") == "rungs-cifar100"))


def test_the_conclusions_are_those_of_the_tables(kept: pa.Table) -> None:
    words = " ".join(PAGE.read_text(encoding="utf-8").split())

    def of(role: str, benchmark: str = "unknown-imagenet") -> list[dict[str, Any]]:
        rows = kept.filter((pc.field("benchmark") == benchmark) & (pc.field("candidate") == role)).to_pylist()
        return [row for row in rows if row["robust"] is not None]

    near, far, clean = of("near"), of("far"), of("far", "unknown-imagenet-clean")
    stay = {name: sum(row[name] == "near" for row in near) for name in ("hierarchy", "path", "wup", THERE)}
    assert f"{stay['hierarchy']} of the {len(near)} near candidates" in words
    assert f"Of the {len(near)} near candidates {stay['path']} are near by `path`" in words
    assert f"at the same share, {stay['wup']} by Wu-Palmer" in words
    assert f"{sum(row['robust'] == 1 for row in far)} of the {len(far)} far classes" in words
    assert f"and {sum(row['robust'] == 1 for row in clean)} of {len(clean)} survive" in words
    turned = [r for role in ("near", "far", "external") for r in of(role) if r[THERE] not in (None, role)]
    assert f"All {len(turned)} classes of `unknown-imagenet` that 3.1 turns" in words
    alike = {row["name"] for row in far if row["path"] != "far"}
    assert {"ramen", "giraffe", "harpsichord", "classroom"} <= alike
    assert {"donuts", "galaxy", "cemetery"} <= {row["name"] for row in far if row["robust"] == 1}


def test_shares_are_those_of_the_columns(kept: pa.Table) -> None:
    readings = kept.column_names[kept.column_names.index("why") + 1 : -1]
    for row in kept.to_pylist():
        given = [row[name] == row["candidate"] for name in readings if row[name] is not None]
        assert row["robust"] == (pytest.approx(sum(given) / len(given)) if given else None)
        assert bool(given) == (row["why"] == "")


@pytest.mark.docs
def test_the_pages_python_runs_as_pasted() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert f"# {done.stdout.strip()}\n" in code


def test_a_folder_that_is_no_wordnet_is_one_line(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "tools.robustness", "--wordnet", str(tmp_path), "--out", str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
