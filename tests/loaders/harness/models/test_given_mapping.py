"""Mappings of columns to classes in the forms in which people have them: read rightly, or refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loaders.harness import image_ids
from loaders.harness.cli.main import app
from loaders.harness.models.class_map import Label, LabelSpace, class_map
from wordnet_splits.base.errors import DataError, UnknownNameError
from wordnet_splits.base.terminal.runner import run

ORDER = [3, 1, 4, 0, 5, 2]
"""The digit of each column."""
WORDS = ("zero", "one", "two", "three", "four", "five")
DIGITS = LabelSpace(tuple(Label(str(n), word) for n, word in enumerate(WORDS)), {})
COLUMNS = tuple(ORDER.index(digit) for digit in range(6))
IDS = {"tench": "n01440764", "crane": "n02012849", "goldfish": "n01443537"}
ANIMALS = LabelSpace(tuple(Label(wnid, name) for name, wnid in IDS.items()), {})
NAMES = ["goldfish", "tench", "crane"]
"""The animal of each column."""


def pairs(keys: Any, values: Any) -> dict[Any, Any]:
    return dict(zip(keys, values, strict=True))


READ = {
    "names.txt": "\n".join(map(str, ORDER)) + "\n",
    "bom.txt": "\ufeff" + "\n".join(map(str, ORDER)),
    "crlf.txt": "\r\n".join(map(str, ORDER)) + "\r\n\r\n",
    "classes": "\n".join(f" {n} " for n in ORDER),
    "list.json": json.dumps([str(n) for n in ORDER]),
    "label2id.json": json.dumps(pairs(map(str, ORDER), range(6))),
    "words.JSON": json.dumps({str(column): WORDS[n] for column, n in enumerate(ORDER)}),
    "mixed.json": json.dumps({"0": "3", "1": "1", "2": "four", "3": "0", "4": "5", "5": "2"}),
}
REFUSED = {
    "id2label.json": json.dumps(pairs(map(str, range(6)), map(str, ORDER))),
    "label2id_text.json": json.dumps(pairs(map(str, ORDER), map(str, range(6)))),
    "config.json": json.dumps({"id2label": pairs(map(str, range(6)), map(str, ORDER))}),
    "numbers.json": json.dumps(ORDER),
    "float.json": json.dumps(pairs(map(str, ORDER), [0.7, 1, 2, 3, 4, 5])),
    "whole_float.json": json.dumps(pairs(map(str, ORDER), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0])),
    "true.json": json.dumps(pairs(map(str, ORDER), [False, True, 2, 3, 4, 5])),
    "null.json": json.dumps(pairs(map(str, ORDER), [None, 1, 2, 3, 4, 5])),
    "text.json": json.dumps(pairs(map(str, ORDER), ["a", 1, 2, 3, 4, 5])),
    "gap.json": json.dumps(pairs(["0", "1", "2", "3", "4", "6"], [WORDS[n] for n in ORDER])),
    "twice.json": '{"3": 0, "1": 1, "4": 2, "0": 3, "5": 4, "2": 5, "3": 5}',
    "negative.json": json.dumps(pairs(map(str, ORDER), [-1, 1, 2, 3, 4, 5])),
    "large.json": json.dumps(pairs(map(str, ORDER), [10**30, 1, 2, 3, 4, 5])),
    "mixed_list.json": json.dumps(["3", 1, "4", "0", "5", "2"]),
    "null_list.json": json.dumps(["3", None, "4", "0", "5", "2"]),
    "one.json": "3",
    "word.json": '"three"',
    "broken.json": '{"3": 0',
    "empty.json": "",
    "nothing.txt": "\n\n",
    "numbered.txt": "\n".join(f"{k} {n}" for k, n in enumerate(ORDER)),
    "numbered.csv": "\n".join(f"{k},{n}" for k, n in enumerate(ORDER)),
    "classes.tsv": "\n".join(f"{n}\t{k}" for k, n in enumerate(ORDER)),
    "short.txt": "3\n1\n4\n",
    "blank.txt": "3\n1\n\n4\n0\n5\n2\n",
    "blank_first.txt": "\n3\n1\n4\n0\n5\n2\n",
    "latin.txt": b"drei\xdf\n1\n4\n0\n5\n2\n",
    "binary.json": b"\x80\x04]q\x00.",
}


def written(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize("kind", [str, Path])
def test_a_file_that_can_mean_one_thing_is_read(name: str, kind: type, tmp_path: Path) -> None:
    assert class_map(DIGITS, 6, mapping=kind(written(tmp_path, name, READ[name]))).columns == COLUMNS


@pytest.mark.parametrize("name", REFUSED)
def test_any_other_file_is_refused(name: str, tmp_path: Path) -> None:
    path = written(tmp_path, name, REFUSED[name])
    with pytest.raises(DataError) as refused:
        class_map(DIGITS, 6, mapping=path, where="model")
    assert (refused.value.where or "").startswith(str(path))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("table.csv", "tench,1\ncrane,2\ngoldfish,0\n"),  # whose lines are not columns
        ("table.txt", "tench;1\ncrane;2\ngoldfish;0\n"),
        ("list.json", "[1, 2, 0]"),
        ("text.json", '{"tench": "1", "crane": "2", "goldfish": "0"}'),
    ],
)
def test_columns_beside_names_are_refused(name: str, content: str, tmp_path: Path) -> None:
    with pytest.raises(DataError) as refused:
        class_map(ANIMALS, 3, mapping=written(tmp_path, name, content))
    assert (refused.value.where or "").startswith(str(tmp_path / name))


@pytest.mark.parametrize("name", ["absent.json", "absent/order", "/absent", "\udcff.txt"])
def test_a_path_without_a_file(name: str) -> None:
    with pytest.raises(DataError) as refused:
        class_map(DIGITS, 6, mapping=name)
    assert refused.value.where == name


@pytest.mark.parametrize("name", ["absent", "", ".", "a\nb", "\ud800", "a\0b", "a" * 5000])
def test_a_name_that_is_no_mapping(name: str) -> None:
    with pytest.raises(UnknownNameError):
        class_map(DIGITS, 6, mapping=name)


@pytest.mark.parametrize(
    ("mapping", "columns"),
    [
        ([1, 2, 0], (1, 2, 0)),
        ((1, 2, 0), (1, 2, 0)),
        (np.array([1, 2, 0]), (1, 2, 0)),
        (range(3), (0, 1, 2)),
        (NAMES, (1, 2, 0)),
        (np.array(NAMES), (1, 2, 0)),
        ({"tench": 1, "crane": np.int64(2), "goldfish": 0}, (1, 2, 0)),
        ({"n01440764": 1, "crane": 2, "goldfish": 0}, (1, 2, 0)),
        (dict(enumerate(NAMES)), (1, 2, 0)),  # config.id2label
        ({"tench": 1}, None),
        ({"tench": 1.0, "crane": 2.0, "goldfish": 0.0}, None),
        ({"tench": None, "crane": 2, "goldfish": 0}, None),
        ({1: "tench", 2: "crane"}, None),
        ({0: 1, 1: 2, 2: 0}, None),
        ({"tench": 1, "crane": 1, "goldfish": 0}, None),
        ([1.0, 2.0, 0.0], None),
        (np.array([1.0, 2.0, 0.0]), None),
        (np.array([[1, 2, 0]]), None),
        ([True, 2, 0], None),
        (["tench", 2, 0], None),
        ([None, "tench", "crane"], None),
        ([], None),
        ({}, None),
        ({"tench", "crane", "goldfish"}, None),
        (iter(NAMES), None),
        (b"\1\2\0", None),
        (3, None),
        (1.5, None),
    ],
)
def test_mappings_in_python(mapping: Any, columns: tuple[int, ...] | None) -> None:
    if columns is not None:
        assert class_map(ANIMALS, 3, mapping=mapping).columns == columns
        return
    with pytest.raises(DataError) as refused:
        class_map(ANIMALS, 3, mapping=mapping, where="model")
    assert refused.value.where == "model"


def test_numbers_that_may_be_classes_or_columns_are_refused() -> None:
    with pytest.raises(DataError):
        class_map(DIGITS, 6, mapping=ORDER)
    assert class_map(DIGITS, 6, mapping=list(map(str, ORDER))).columns == COLUMNS
    assert class_map(DIGITS, 6, mapping=dict(enumerate(map(str, ORDER)))).columns == COLUMNS
    assert class_map(DIGITS, 6, mapping=[5, 4, 3, 2, 1, 0]).columns == (5, 4, 3, 2, 1, 0)  # the same in both
    assert class_map(DIGITS, 7, mapping=ORDER).columns == tuple(ORDER)  # too few for classes of columns


def test_a_file_of_numbers_has_columns_of_labels_where_it_cannot_have_classes(tmp_path: Path) -> None:
    path = written(tmp_path, "columns.json", "[1, 2, 0]")
    assert class_map(ANIMALS, 4, mapping=path).columns == (1, 2, 0)
    with pytest.raises(DataError) as refused:
        class_map(ANIMALS, 3, mapping=path)
    assert refused.value.where == str(path)
    with pytest.raises(DataError):
        class_map(ANIMALS, 4, mapping=written(tmp_path, "of_four.json", "[1, 2, 0, 3]"))


def test_a_path_may_be_the_name_of_a_source() -> None:
    space = LabelSpace(ANIMALS.labels, {"animals": ("goldfish", "tench", "crane")})
    assert class_map(space, 3, mapping=Path("animals")).columns == (1, 2, 0)
    assert class_map(space, 3, mapping=Path("identity")).columns == (0, 1, 2)


NUMBERS = st.one_of(st.integers(-2, 7), st.sampled_from([0.5, 1.0, None, True, "x", [], 10**30]))
CLASSES = st.one_of(
    st.sampled_from([*map(str, range(7)), "zero", "one", "ZERO", "zero, one", "", " 3"]), NUMBERS
)


@given(
    st.one_of(
        st.dictionaries(CLASSES.map(str), CLASSES, max_size=8),
        st.lists(CLASSES, max_size=8),
        st.permutations([str(n) for n in range(6)]).map(lambda names: pairs(map(str, range(6)), names)),
        st.permutations(range(6)),
    )
)
@pytest.mark.fuzz
def test_no_json_ends_in_another_error(value: Any) -> None:
    for given_mapping in (value, *([pairs(map(str, range(6)), value)] if len(value) == 6 else [])):
        try:
            found = class_map(DIGITS, 6, mapping=given_mapping)
        except DataError:
            continue
        assert sorted(found.columns) == list(range(6))
        if isinstance(given_mapping, dict) and all(isinstance(v, int) for v in given_mapping.values()):
            columns = {str(n): column for n, column in enumerate(found.columns)}
            assert all(columns.get(name, column) == column for name, column in given_mapping.items())


@given(text=st.one_of(st.text(max_size=40), st.binary(max_size=40).map(lambda data: data.decode("latin-1"))))
@pytest.mark.fuzz
def test_no_text_ends_in_another_error(text: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("mapping")
    for name, encoding in (("a.json", "utf-8"), ("a.txt", "utf-8"), ("b.txt", "latin-1")):
        path = written(folder, name, text.encode(encoding, "replace"))
        with pytest.raises(DataError):
            class_map(DIGITS, 6, mapping=path)


@pytest.mark.parametrize("name", ["null.json", "null\udcff.json", "absent\udcff.json"])
def test_the_command_refuses_a_file_in_one_line(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("arrays").mkdir()
    for group in ("digits-0-5", "uniform"):
        ids = image_ids("digits", group)
        logits = np.random.default_rng(0).normal(size=(len(ids), 6)).astype(np.float32)
        np.savez(f"arrays/{group}.npz", ids=np.array(ids), logits=logits)
    if name.startswith("null"):
        written(tmp_path, name, REFUSED["null.json"])
    words = ["run", "--benchmark", "digits", "--arrays", "arrays", "--model-id", "m", "--detectors", "msp"]
    assert run(app, [*words, "--group", "uniform", "--mapping", name], "unknown-eval") == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert not Path("results").exists()
