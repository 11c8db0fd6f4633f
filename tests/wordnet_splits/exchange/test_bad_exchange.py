"""Files that somebody else made, wrong in every way that we could think of: one line and exit code 2."""

from __future__ import annotations

import io
import json
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.raising import mentions
from wordnet_splits.base.errors import DataError, UnknownNameError
from wordnet_splits.exchange import format_names, import_benchmark
from wordnet_splits.exchange.paths import decoded, encoded, parse_tree_path, tree_path


def tar_of(name: str, data: bytes, kind: bytes = tarfile.REGTYPE) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        info = tarfile.TarInfo(name)
        info.size, info.type = len(data), kind
        archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def parquet_of(**columns: list[object]) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer)
    return buffer.getvalue()


def class_list(source: str, known: int) -> bytes:
    return json.dumps({"sources": {source: {"known": [known], "unknown": []}}}).encode()


PLACE = b"places365/airfield/Places365_val_00000001.jpg 0\n"  # which shows another class

BAD = {
    "openood-no-label": ("openood", "test_a.txt", b"digits/0.png\n", ()),
    "openood-label": ("openood", "test_a.txt", b"0/0.png one\n", "one"),
    "openood-number": ("openood", "test_a.txt", b"0/0.png 99999999999999999999\n", ()),
    "openood-bytes": ("openood", "test_a.txt", b"\xff\xfe\x00 1\n", ()),
    "openood-empty": ("openood", "test_a.txt", b"\n\n", ()),
    "openood-elsewhere": ("openood", "test_a.txt", b"../../etc/passwd -1\n", ()),
    "openood-control": ("openood", "test_a.txt", b"\x1b[31m/x.png -1\n", ()),
    "openood-twice": ("openood", "a.txt", b"texture/banded/banded_0002.jpg -1\n" * 2, ()),
    "openood-class": ("openood", "a.txt", PLACE, ()),
    "openset-cells": ("openset-imagenet", "p1_val.csv", b"a,b,c\n", "3"),
    "openset-quotes": ("openset-imagenet", "p1_val.csv", b'"a/b.jpg,0\n', ()),
    "openset-long": ("openset-imagenet", "p1_val.csv", b"a" * 200_000 + b",0\n", ()),
    "openood-long": ("openood", "test_a.txt", b"a/" * 5000 + b"b.png 0\n", "10,005"),
    "openset-label": ("openset-imagenet", "p1_val.csv", b"a/b.jpg,x\n", "x"),
    "csv-columns": ("csv", "images.csv", b"path,label\na,1\n", "source"),
    "csv-cells": ("csv", "images.csv", b"source,image_id\ndigits\n", "2"),
    "csv-quotes": ("csv", "images.csv", b'source,image_id\n"digits"x,1\n', ()),
    "csv-split": ("csv", "images.csv", b"source,image_id,split\ndigits,1,all\n", "all"),
    "csv-digest": ("csv", "images.csv", b"source,image_id,digest\ndigits,1,abc\n", ()),
    "csv-source": ("csv", "images.csv", b"source,image_id\ndigit,1\n", ()),
    "csv-id": ("csv", "images.csv", b"source,image_id\ndigits,1797\n", ()),
    "csv-role": ("csv", "images.csv", b"source,image_id,role\ndigits,1,excluded\n", ()),
    "imagefolder-file": ("imagefolder", "tree", b"x", ()),
    "hub-rubbish": ("hub", "a.parquet", b"PAR1rubbish", ()),
    "hub-columns": ("hub", "a.parquet", parquet_of(image_id=["1"]), "source"),
    "hub-types": ("hub", "a.parquet", parquet_of(image_id=[1], source=[2]), ()),
    "hub-null": ("hub", "a.parquet", parquet_of(image_id=[None], source=["digits"]), "image_id"),
    "pytorch-ood-rubbish": ("pytorch-ood", "classes.json", b"[", ()),
    "pytorch-ood-keys": ("pytorch-ood", "classes.json", b"{}", ()),
    "pytorch-ood-source": ("pytorch-ood", "classes.json", class_list("digit", 0), "digits"),
    "pytorch-ood-class": ("pytorch-ood", "classes.json", class_list("digits", 10), "10"),
    "webdataset-rubbish": ("webdataset", "a.tar", b"rubbish" * 100, ()),
    "webdataset-outside": ("webdataset", "a.tar", tar_of("../x.json", b"{}"), ()),
    "webdataset-link": ("webdataset", "a.tar", tar_of("x.json", b"", tarfile.SYMTYPE), ()),
    "webdataset-json": ("webdataset", "a.tar", tar_of("x.json", b"{"), ()),
    "webdataset-array": ("webdataset", "a.tar", tar_of("x.json", b"[]"), ()),
    "webdataset-large": ("webdataset", "a.tar", tar_of("x.json", b" " * 70_000), "70,000"),
    "webdataset-bytes": ("webdataset", "a.tar", tar_of("x.json", b"\xff"), ()),
}


@pytest.mark.parametrize("case", BAD)
def test_it_is_refused_in_one_line(case, command, tmp_path):
    kind, name, data, said = BAD[case]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / name).write_bytes(data)
    path = tmp_path / "in" / name if kind == "imagefolder" else tmp_path / "in"
    done = command("import", kind, path, "--out", tmp_path / "out")
    assert mentions(done.error, said)
    assert not (tmp_path / "out").exists()
    assert "\x1b" not in done.error


@pytest.mark.parametrize("kind", format_names())
def test_nothing_there_is_refused_in_one_line(kind, command, tmp_path):
    assert command("import", kind, tmp_path / "absent", "--out", "out").error
    (tmp_path / "empty").mkdir()
    assert command("import", kind, tmp_path / "empty", "--out", "out").error
    os.mkfifo(tmp_path / "pipe")
    assert command("import", kind, tmp_path / "pipe", "--out", "out").error


def test_options_are_refused_in_one_line(command, tmp_path):
    assert command("import", "openood", tmp_path, "--role", "near").error
    assert command("import", "openood", tmp_path, "--source", "a", "--source", "b").error
    assert mentions(command("export", "digits", "--format", "cvs", "--out", "x").error, "csv")
    (tmp_path / "there").write_text("mine")
    assert mentions(command("export", "digits", "--format", "csv", "--out", "there").error, "there")
    assert (tmp_path / "there").read_text() == "mine"


def test_what_is_no_image_is_left_out_when_asked(command, tmp_path):
    (tmp_path / "test_a.txt").write_text("0/0.png 0\n0/1797.png 0\n")
    done = command("import", "openood", "test_a.txt", "--source", "digits", "--allow-missing", "--json")
    assert done.code == 3
    found = done.json["imported"]
    assert found["unmatched"] == ["0/1797.png"]
    assert [g["actual"] for g in found["groups"]] == [1, 1]


def test_ood_lists_alone_are_lists(command, tmp_path):
    (tmp_path / "test_a.txt").write_text("texture/banded/banded_0002.jpg -1\n")
    done = command("import", "openood", "test_a.txt", "--name", "mine")
    assert (done.code, done.err) == (0, "")
    assert '{ list = "mine/test_a" }' in done.out
    assert not (tmp_path / "imported" / "mine.toml").exists()


@given(st.text(min_size=1))
def test_every_id_has_a_name_and_comes_back(text):
    try:
        text.encode()
    except UnicodeEncodeError:
        return  # no table of ours can hold it
    for dots in (True, False):
        name = encoded(text, dots=dots)
        assert decoded(name) == text
        assert not set(name) & set("/\\ ,\0\n")
        assert not name.startswith(".")
    if len(encoded(text)) <= 250:
        found = parse_tree_path(tree_path("test", "group", "a b/c", text, ".png"))
        assert found == ("test", "group", "a b/c", text)


ID = [(n % 5, n) for n in (0, 1, 2, 3, 4, 10, 11)]
"""(class, image) of digits."""
OOD = [(5, 5), (7, 7)]
LabelOf = Callable[[int, int], int]
"""(class, image) -> label in a list."""
OTHER_LABELS: dict[str, LabelOf] = {
    "permuted": lambda c, n: [3, 0, 4, 1, 2][c],
    "one-based": lambda c, n: c + 1,
    "gaps": lambda c, n: 10 * c,
    "two classes with a label": lambda c, n: c // 2,
    "a class with two labels": lambda c, n: 4 if n == 10 else c,
}
NEGATIVE = "a negative label"


def write(name: str, folder: Path, label: LabelOf) -> dict[str, str]:
    """Write lists in a format, and return the roles that they do not tell."""
    folder.mkdir(parents=True)
    if name == "csv":
        rows = [f"digits,{n},{c},id,known,test,{label(c, n)}\n" for c, n in ID]
        rows += [f"digits,{n},{c},near,odd,test,-1\n" for c, n in OOD]
        (folder / "images.csv").write_text(
            "source,image_id,class_id,role,group,split,label\n" + "".join(rows)
        )
        return {}
    if name == "openset-imagenet":
        pairs = [(f"{c}/{n}.png", label(c, n)) for c, n in ID] + [(f"{c}/{n}.png", -2) for c, n in OOD]
        (folder / "test.csv").write_text("".join(f"{path},{number}\n" for path, number in pairs))
        return {}
    (folder / "test_known.txt").write_text("".join(f"{c}/{n}.png {label(c, n)}\n" for c, n in ID))
    (folder / "test_odd.txt").write_text("".join(f"{c}/{n}.png -1\n" for c, n in OOD))
    return {"known": "id", "odd": "near"}


@pytest.mark.parametrize("name", ["csv", "openood", "openset-imagenet"])
@pytest.mark.parametrize("case", [*OTHER_LABELS, NEGATIVE])
def test_other_labels_are_refused(case: str, name: str, tmp_path: Path) -> None:
    if case == NEGATIVE and name == "openset-imagenet":
        pytest.skip("a negative label says there that an image is not ID")
    label = OTHER_LABELS.get(case, lambda c, n: -1 if n == 10 else c)
    roles = write(name, tmp_path / "lists", label)
    with pytest.raises(DataError) as refused:
        import_benchmark(name, tmp_path / "lists", tmp_path / "out", source="digits", roles=roles)
    assert refused.value.where == "group known"
    assert not (tmp_path / "out").exists()


@settings(max_examples=20)
@given(numbers=st.permutations(range(5)), offset=st.sampled_from([0, 0, 1]), scale=st.sampled_from([1, 1, 2]))
@pytest.mark.fuzz
def test_accepted_labels_are_kept(
    numbers: list[int], offset: int, scale: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("lists")
    labels = {c: scale * number + offset for c, number in enumerate(numbers)}
    write("openood", folder / "lists", lambda c, n: labels[c])
    try:
        done = import_benchmark(
            "openood", folder / "lists", folder / "out", source="digits", roles={"odd": "near"}
        )
    except DataError:
        assert labels != {c: c for c in range(5)}
        return
    assert done.manifest is not None
    images = done.manifest.images("test", "known")
    made = dict(zip(images["image_id"].to_pylist(), images["label"].to_pylist(), strict=True))
    assert made == {str(n): labels[c] for c, n in ID}


def test_labels_of_unknown_images_are_not_read(tmp_path: Path) -> None:
    write("openood", tmp_path / "lists", lambda c, n: c)
    (tmp_path / "lists" / "test_odd.txt").write_text("".join(f"{c}/{n}.png 0\n" for c, n in OOD))
    done = import_benchmark(
        "openood", tmp_path / "lists", tmp_path / "out", source="digits", roles={"odd": "near"}
    )
    assert done.manifest is not None
    assert done.manifest.images("test", "odd")["label"].to_pylist() == [-1, -1]


@pytest.mark.parametrize("name", ["csv", "openset-imagenet"])
@pytest.mark.parametrize("end", ["\n", "\n\n\n", "\r\n\r\n"])
def test_blank_lines_at_the_end_of_a_table_are_no_rows(name: str, end: str, tmp_path: Path) -> None:
    write(name, tmp_path / "lists", lambda c, n: c)
    (file,) = (tmp_path / "lists").glob("*.csv")
    with file.open("a", newline="") as table:
        table.write(end)
    done = import_benchmark(name, tmp_path / "lists", tmp_path / "out", source="digits")
    assert done.manifest is not None
    assert done.manifest.images("test").num_rows == len(ID) + len(OOD)


@pytest.mark.parametrize(
    "named", [{"roles": {"od": "near"}}, {"roles": {"Odd_": "near"}}, {"sources": {"od": "digits"}}]
)
def test_a_role_or_source_of_no_group_is_refused(named: dict[str, dict[str, str]], tmp_path: Path) -> None:
    write("openood", tmp_path / "lists", lambda c, n: c)
    with pytest.raises(UnknownNameError) as refused:
        import_benchmark("openood", tmp_path / "lists", tmp_path / "out", source="digits", **named)
    assert "odd" in refused.value.near
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["openood", "openset-imagenet"])
def test_an_id_class_among_the_unknown_images_is_refused(name: str, tmp_path: Path) -> None:
    write(name, tmp_path / "lists", lambda c, n: c)
    line = "4/14.png -1\n" if name == "openood" else "4/14.png,-2\n"
    with (tmp_path / "lists" / ("test_odd.txt" if name == "openood" else "test.csv")).open("a") as file:
        file.write(line)
    with pytest.raises(DataError) as refused:
        import_benchmark(name, tmp_path / "lists", tmp_path / "out", source="digits")
    assert refused.value.where == ("group odd" if name == "openood" else "group unknown")
