"""Audits of an author's list: a catalog, groups of a new benchmark, and the files of a report."""

from __future__ import annotations

import base64
import csv
import io
import re
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from PIL import Image

import wordnet_splits as ws
from tests.raising import raises
from tests.wordnet_splits import own_pictures as own
from tests.wordnet_splits.command import Command
from wordnet_splits.base.errors import DataError
from wordnet_splits.wordnet.taxonomy import load

NAMES = ["golden retriever", "zebra", "teapot"]


@pytest.fixture
def catalog_file(tmp_path: Path) -> Path:
    """A catalog with a class that WordNet lacks, one corrected by hand, and one under a wider synset."""
    path = tmp_path / "mine.tsv"
    ws.make_catalog(["axolotl", "mouse", "marbled newt", "zzqq"], path, ask_below=0)
    lines = path.read_text("utf-8").splitlines()
    rows = {line.split("\t")[0]: line.split("\t") for line in lines}
    for name, wnid, mapped in (
        ("mouse", "n03793489", "hand"),
        ("marbled newt", load().find("newt"), "wider"),
    ):
        rows[name][4:6] = [wnid, mapped]
        lines = ["\t".join(rows[name]) if line.startswith(f"{name}\t") else line for line in lines]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


@pytest.fixture
def pics(own_datasets_forgotten: None, tmp_path: Path) -> Path:
    """The root of a declared dataset."""
    root = tmp_path / "pics"
    own.class_folders(root, NAMES, {"train": 3, "test": 2})
    own.catalog(root / "mypics.tsv", NAMES, {"train": 3, "test": 2})
    own.declare(root, "mypics", "folders")
    return root


def test_a_catalog_is_read_with_its_synsets_as_they_were_confirmed(catalog_file: Path) -> None:
    report = ws.audit_classes(catalog_file)
    relations = {item.id: (item.relation, item.other_name) for item in report.classes}
    assert relations["axolotl"] == ("equal", "axolotl")
    # the name alone is the animal, and newts are above the eft that ImageNet knows unless filed as wider
    assert relations["mouse"] == ("equal", "mouse")
    assert relations["marbled newt"][0] is None
    assert report.not_judged == ("zzqq",)
    assert ws.audit_classes(["zebra"], catalog_file).known == 4


def test_a_row_of_a_catalog_that_is_malformed_is_named(catalog_file: Path) -> None:
    catalog_file.write_text(catalog_file.read_text("utf-8").replace("n03793489", "mouse.n.04"), "utf-8")
    with raises(DataError, where="mine.tsv:4"):
        ws.audit_classes(catalog_file)


@pytest.mark.parametrize("text", ["dog, cat, horse\n", "n02085936,n02086079\n", "dog,cat"])
@pytest.mark.parametrize("name", ["mine.txt", "mine.csv"])
def test_a_line_of_several_classes_is_refused(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text, "utf-8")
    with pytest.raises(DataError):
        ws.audit_classes(path)
    with raises(DataError, where="list"):
        ws.audit_classes([text])


def test_a_wnid_and_its_name_are_one_class(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("n02085936,Maltese dog\n", "utf-8")
    assert ws.audit_classes(path).drops == ("n02085936",)


def test_tables_have_every_class_and_the_same_columns_whatever_the_classes(tmp_path: Path) -> None:
    report = ws.audit_classes(["algebra", "dog"])
    report.write(tmp_path / "a.csv")
    report.write(tmp_path / "a.parquet")
    ws.audit_classes(["algebra"]).write(tmp_path / "b.parquet")
    table = pq.read_table(tmp_path / "a.parquet")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "a.csv").read_text("utf-8"))))
    assert [row["id"] for row in rows] == table["id"].to_pylist() == ["algebra", "dog"]
    assert rows[1]["path"] == "n02084071 n02110341"
    assert pq.read_table(tmp_path / "b.parquet").schema.equals(table.schema)


def test_a_page_names_the_path_and_escapes_what_it_shows(tmp_path: Path) -> None:
    listed = tmp_path / "<b>&.txt"
    listed.write_text("dog\nalgebra\n", "utf-8")
    ws.audit_classes(listed).write(tmp_path / "audit.html")
    page = (tmp_path / "audit.html").read_text("utf-8")
    assert "dog.n.01 &gt; dalmatian.n.02" in page
    assert "<b>" not in page
    assert "&lt;b&gt;&amp;.txt" in page
    assert page.count("<tr>") == 2  # the head and dog
    assert "<img" not in page


def test_a_page_has_pictures_of_both_sides_where_roots_are_given(
    pics: Path, command: Command, tmp_path: Path
) -> None:
    (pics / "test" / "zebra" / "picture 0.png").write_bytes(b"no picture")
    report = ws.audit_classes("mypics", "mypics", roots={"mypics": pics})
    report.write(tmp_path / "audit.html")
    page = (tmp_path / "audit.html").read_text("utf-8")
    images = re.findall(r'<img src="data:image/(?:png|jpeg);base64,([^"]+)" alt="([^"]+)"', page)
    assert Counter(alt for _, alt in images) == {"golden retriever": 4, "zebra": 2, "teapot": 4}
    assert "2 images cannot be read" in page
    assert Image.open(io.BytesIO(base64.b64decode(images[0][0]))).size == (10, 12)
    done = command("audit", "list", "mypics", "--out", "again.html", "--root", f"mypics={pics}")
    assert (done.code, done.err) == (1, "written to again.html\n")


def test_a_group_of_a_new_benchmark_is_a_list_with_pictures(
    pics: Path, command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    root = ("--root", f"mypics={pics}")
    known, far = "mypics:golden retriever,zebra", "mypics:teapot"
    assert command("new", "mine", "--id", known, "--far", far, *root).code == 0
    assert command("build", "mine.toml", "--out", "build", *root).code == 0
    (pics / "dataset.toml").unlink()  # the benchmark carries the declaration
    groups = {row.group for row in ws.load_manifest("build/mine").groups}
    monkeypatch.setattr("wordnet_splits.datasets.catalog.declarations._REGISTERED", {})
    for group in sorted(groups):
        done = command("audit", "list", f"build/mine:{group}", "--out", f"{group}.html", *root)
        assert done.code == 1, done.err
        assert "<img" in (tmp_path / f"{group}.html").read_text("utf-8")
