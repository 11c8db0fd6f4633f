"""``docs/evidence/audit.md`` and ``docs/audit.parquet`` hold exactly what an audit of the lists gives."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tools.audits.page import Audited, as_table, filled, tables
from tools.audits.reading import audited, lists
from wordnet_splits.audit.overlaps import audit_classes
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.wordnet.taxonomy import load

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "evidence" / "audit.md"
PARQUET = ROOT / "docs" / "audit.parquet"


@pytest.fixture(scope="module")
def found(facts: Path) -> Audited:
    """Every list with its audit."""
    return list(audited(facts))


@pytest.mark.docs
def test_the_page_holds_what_is_computed(found: Audited) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page.splitlines() == filled(page, tables(found)).splitlines()


@pytest.mark.docs
def test_the_parquet_holds_what_is_computed(found: Audited, facts: Path) -> None:
    ours, kept = as_table(found, facts), pq.read_table(PARQUET)
    assert kept.drop_columns("mean").equals(ours.drop_columns("mean"))
    assert kept["mean"].to_pylist() == pytest.approx(ours["mean"].to_pylist(), nan_ok=True)


def of(table: pa.Table, name: str) -> pa.Table:
    return table.filter(pc.field("list") == name)


@pytest.mark.parametrize(
    ("name", "classes", "equal", "below", "above", "leaking"),
    [
        ("SSB-hard, winter 2021", 980, 0, 160, 32, 192),
        ("SSB-easy, winter 2021", 1000, 0, 0, 134, 134),
        ("PASCL ImageNet-1k-OOD (test)", 1000, 0, 131, 138, 269),
        ("ImageNet-OOD", 637, 0, 1, 2, 3),
        ("PASCL test against its auxiliary", 1000, 0, 1000, 10, 1000),
    ],
)
def test_the_page_says_what_others_counted(name, classes, equal, below, above, leaking) -> None:
    figures = " | ".join(f"{n:,}" for n in (classes, equal, below, above, leaking))
    (row,) = (
        line
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if re.match(rf"\| {re.escape(name)} \|.*\| {figures} \|$", line)
    )
    assert of(pq.read_table(PARQUET), name)["drop"].to_pylist().count(True) == leaking, row


@pytest.mark.parametrize(("known", "listed", "held"), [("cifar10", 160, 180), ("cifar100", 133, 153)])
def test_the_page_says_which_classes_of_tiny_imagenet_are_audited(known: str, listed: int, held: int) -> None:
    manifest = load_manifest(f"openood-{known}")
    test, val = (set(manifest.images(s, "tin")["class_id"].to_pylist()) for s in ("test", "val"))
    name = f"OpenOOD CIFAR-{known.removeprefix('cifar')}: Tiny ImageNet"
    assert set(of(pq.read_table(PARQUET), name)["class_id"].to_pylist()) == test
    assert (len(test), len(test | val), len(val - test)) == (listed, held, 20)
    assert audit_classes(f"openood-{known}:tin", known).drops == audit_classes(sorted(test), known).drops
    words = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert (
        "160 against CIFAR-10 and 133 against CIFAR-100. The group `tin` of our manifests has 180 and 153"
        in words
    )


def test_every_test_class_of_pascl_lies_below_animal() -> None:
    taxonomy, table = load(), pq.read_table(PARQUET)
    test = of(table, "PASCL test against its auxiliary")["class_id"].to_pylist()
    assert "n00015388" in of(table, "PASCL ImageNet-Extra (auxiliary)")["class_id"].to_pylist()
    assert len(test) == 1000
    assert all("n00015388" in taxonomy.ancestors(wnid) for wnid in test)


def test_of_a_list_that_nobody_may_copy_only_leaks_are_kept() -> None:
    table = pq.read_table(PARQUET)
    closed = [one for one in lists() if not one.whole]
    assert {"ImageNet-OOD", "MCM: ImageNet-20 against ImageNet-10"} <= {one.name for one in closed}
    for one in closed:
        assert one.licence in ("none stated", "not known")
        assert all(of(table, one.name)["drop"].to_pylist())
    assert all(one.licence == "shipped" for one in lists() if one.given)


@pytest.mark.docs
def test_the_pages_python_runs_as_pasted() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert f"# {done.stdout.strip()}\n" in code


def test_filling_replaces_rows_and_wants_every_table() -> None:
    page = "a\n| x | y |\n|---|---:|\n| old | 1 |\nb\n"
    assert filled(page, [[("new", "2")]]) == "a\n| x | y |\n|---|---:|\n| new | 2 |\nb\n"
    with pytest.raises(AssertionError, match="lacks 1 tables"):
        filled(page, [[], []])


def test_a_folder_without_the_lists_is_one_line(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "tools.audits", "--facts", str(tmp_path), "--out", str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {tmp_path}: lacks ")
    assert len(done.stderr.splitlines()) == 1
    assert not list(tmp_path.iterdir())
