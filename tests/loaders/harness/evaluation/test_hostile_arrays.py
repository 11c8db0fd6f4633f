"""Arrays and files of arrays that are no such thing: each is refused in one line, none is read as another."""

from __future__ import annotations

import io
import json
import struct
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from loaders import evaluate_arrays
from loaders.harness.evaluation.array_files import read_sets
from wordnet_splits.base.errors import DataError, SplitsError

N, K = 40, 3
LOGITS = np.random.default_rng(0).normal(size=(N, K)).astype(np.float32)
LABELS = np.arange(N) % K
NEAR = np.random.default_rng(1).normal(size=(N, K)).astype(np.float32)
RIGHT = evaluate_arrays({"id": {"logits": LOGITS, "labels": LABELS}, "near": {"logits": NEAR}}, "msp").scores
DATA = NEAR.tobytes()


def npy(header: str | bytes, data: bytes = DATA, version: int = 1, length: int | None = None) -> bytes:
    """Return the bytes of a .npy file with a header as given."""
    text = header.encode() if isinstance(header, str) else header
    size = struct.pack("<H" if version == 1 else "<I", len(text) if length is None else length)
    return b"\x93NUMPY" + bytes([version, 0]) + size + text + data


def described(shape: str, kind: str = "'<f4'", order: str = "False", more: str = "") -> str:
    return f"{{'descr': {kind}, 'fortran_order': {order}, 'shape': {shape}, {more}}}"


SHAPE = f"({N}, {K})"
SOUND = {
    "numpy": npy(described(SHAPE)),
    "version 2": npy(described(SHAPE), version=2),
    "no blanks": npy(described(SHAPE).replace(" ", "")),
    "columns first": npy(described(SHAPE, order="True"), NEAR.tobytes("F")),
    "other byte order": npy(described(SHAPE, "'>f4'"), NEAR.astype(">f4").tobytes()),
    "double": npy(described(SHAPE, "'<f8'"), NEAR.astype(np.float64).tobytes()),
}
HEADERS = {
    **{
        text[:12]: npy(text)
        for text in ("((((", "", "{", "None", "1", "[]", "{}", "'" * 3, "\\", "\n\n", "{1:2}", "\x00" * 64)
    },
    "deep": npy("(" * 9000),
    "deep minus": npy(described("-" * 9000 + "1")),
    "deep list": npy("[" * 90 + "]" * 90),
    "call": npy(described(f"__import__('os').abort() or {SHAPE}")),
    "shape of a truth value": npy(described("(True, 3)"), DATA[:12]),
    "negative": npy(described("(-1, 3)")),
    "negative both": npy(described(f"(-{N}, -{K})")),
    "huge": npy(described(f"({10**12}, 3)")),
    "huge empty": npy(described(f"({10**18}, 0)"), b""),
    "huge digits": npy(described(f"({'9' * 5000}, 3)")),
    "no tuple": npy(described("120")),
    "float": npy(described("(40.0, 3)")),
    "text": npy(described("('40', 3)")),
    "leading zero": npy(described("(040, 3)")),
    "two blanks": npy(described("(40 3)")),
    "flat": npy(described("(120,)")),
    "scalar": npy(described("()"), DATA[:4]),
    "three axes": npy(described("(40, 3, 1)")),
    "no rows": npy(described("(0, 3)"), b""),
    "no columns": npy(described("(40, 0)"), b""),
    "short": npy(described(SHAPE), DATA[:-4]),
    "long": npy(described(SHAPE), DATA + bytes(4)),
    "no data": npy(described(SHAPE), b""),
    "other rows": npy(described("(39, 3)"), DATA[:-12]),
    "object": npy(described(SHAPE, "'|O'")),
    "pickle": npy(described(SHAPE, "'|O'"), b"cos\nabort\n(tR."),
    "complex": npy(described("(40, 3)", "'<c8'"), DATA * 2),
    "texts": npy(described(SHAPE, "'<U1'"), NEAR.astype("<U1").tobytes()),
    "empty texts": npy(described(f"({10**12}, 3)", "'<U0'"), b""),
    "raw": npy(described(SHAPE, "'|V4'")),
    "dates": npy(described("(40, 3)", "'<M8[s]'"), DATA * 2),
    "truth values": npy(described(SHAPE, "'|b1'"), bytes(N * K)),
    "fields": npy(described("(40,)", "[('a', '<f4'), ('b', '<f4'), ('c', '<f4')]")),
    "unknown type": npy(described(SHAPE, "'<q9'")),
    "type as number": npy(described(SHAPE, "4")),
    "order as number": npy(described(SHAPE, order="1")),
    "key twice": npy(described(SHAPE, more="'shape': (20, 6), ")),
    "more keys": npy(described(SHAPE, more="'x': 1, ")),
    "length beyond the file": npy(described(SHAPE), length=60_000),
    "length of none": npy(described(SHAPE), length=0),
    "length of gigabytes": npy(described(SHAPE), version=2, length=2**32 - 1),
    "version 9": npy(described(SHAPE), version=9),
    "no magic": b"NUMPY" + npy(described(SHAPE))[6:],
    "magic alone": b"\x93NUMPY",
    "nothing": b"",
    "not UTF-8": npy(b"\xff\xfe" * 20),
    "NaN": npy(described(SHAPE), np.full((N, K), np.nan, np.float32).tobytes()),
}


def zipped(*members: tuple[str, bytes], kind: int = zipfile.ZIP_STORED) -> bytes:
    archive = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(archive, "w", kind) as file:
        warnings.simplefilter("ignore")  # of two members of one name
        for name, content in members:
            file.writestr(name, content)
    return archive.getvalue()


GOOD = SOUND["numpy"]
WHOLE = zipped(("logits.npy", GOOD))
OTHER = npy(described(SHAPE), LOGITS.tobytes())


def altered(content: bytes, old: bytes, new: bytes) -> bytes:
    assert old in content
    return content.replace(old, new)


def flagged(content: bytes, offset: int, value: bytes) -> bytes:
    """Return an archive of one member with a byte changed in its local and in its central entry."""
    central = content.index(b"PK\x01\x02")
    for start in (offset, central + offset + 2):
        content = content[:start] + value + content[start + 1 :]
    return content


ARCHIVES = {
    "two of one name": zipped(("logits.npy", GOOD), ("logits.npy", OTHER)),
    "two of one name, reversed": zipped(("logits.npy", OTHER), ("logits.npy", GOOD)),
    "with and without its ending": zipped(("logits.npy", GOOD), ("logits", OTHER)),
    "text": zipped(("logits.npy", GOOD), ("features.npy", b"1,2,3")),
    "not an array": zipped(("logits.npy", GOOD), ("readme.txt", b"x")),
    "another array": zipped(("logits.npy", GOOD), ("probabilities.npy", GOOD)),
    "a path": zipped(("../logits.npy", GOOD)),
    "a folder": zipped(("logits/", b""), ("logits.npy", GOOD)),
    "a folder alone": zipped(("logits/", b"")),
    "no member": zipped(),
    "an archive in it": zipped(("logits.npz", WHOLE)),
    "no end": WHOLE[:-10],
    "no start": WHOLE[20:],
    "damaged": altered(WHOLE, DATA[:8], bytes(8)),
    "encrypted": flagged(WHOLE, 6, b"\x01"),
    "an unknown compression": flagged(WHOLE, 8, b"\x63"),
    "zeros that expand": zipped(
        ("logits.npy", npy(described("(99999999, 3)"), bytes(1_200_000))), kind=zipfile.ZIP_DEFLATED
    ),
    "a bomb": zipped(("logits.npy", bytes(300_000_000)), kind=zipfile.ZIP_DEFLATED),
}


def parquet(columns: list[Any], names: list[str] | None = None) -> bytes:
    sink = io.BytesIO()
    names = names or ["logits"]
    pq.write_table(
        pa.Table.from_arrays([pa.array(c) if isinstance(c, list) else c for c in columns], names), sink
    )
    return sink.getvalue()


LISTS = NEAR.tolist()
TABLES = {
    "two columns of one name": parquet([LISTS, LOGITS.tolist()], ["logits", "logits"]),
    "two columns of labels": parquet(
        [LISTS, LABELS.tolist(), LABELS.tolist()], ["logits", "labels", "labels"]
    ),
    "a number": parquet([NEAR[:, 0].tolist()]),
    "texts": parquet([[list(map(str, row)) for row in LISTS]]),
    "one text": parquet([["x"] * N]),
    "lists of lists": parquet([[[row] for row in LISTS]]),
    "rows that differ": parquet([[row[: 1 + n % 3] for n, row in enumerate(LISTS)]]),
    "rows that differ, of the whole size": parquet([[[1.0] * 2, [1.0] * 4, *LISTS[2:]]]),
    "an empty row": parquet([[None, *LISTS[1:]]]),
    "an empty number": parquet([[[None, 1.0, 2.0], *LISTS[1:]]]),
    "structs": parquet([[{"a": 1.0}] * N]),
    "truth values": parquet([(NEAR > 0).tolist()]),
    "bytes": parquet([[b"abc"] * N]),
    "a map": parquet([pa.array([[("a", 1.0)]] * N, pa.map_(pa.string(), pa.float32()))]),
    "decimals": parquet([pa.array([1] * N, pa.decimal128(5))]),
    "lists of dates": parquet([pa.array([[1, 2, 3]] * N, pa.list_(pa.timestamp("s")))]),
    "lists of structs": parquet([[[{"a": 1.0}] * 3] * N]),
    "lists of nothing": parquet([[[]] * N]),
    "nulls": parquet([pa.nulls(N)]),
    "no rows": parquet([pa.array([], pa.list_(pa.float32()))]),
    "another column": parquet([[1] * N], ["x"]),
    "a dictionary": parquet([pa.array(["a"] * N).dictionary_encode()]),
    "no Parquet": b"PAR1" + bytes(40) + b"PAR1",
}


def tensors(kind: str, shape: list[Any], end: int = len(DATA), data: bytes = DATA) -> bytes:
    """Return the bytes of a .safetensors file of one array."""
    header = {"logits": {"dtype": kind, "shape": shape, "data_offsets": [0, end]}}
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


TENSORS = {
    "complex": tensors("C64", [N // 2, K]),
    "truth values": tensors("BOOL", [4 * N, K]),
    "another type": tensors("F8_E4M3", [4 * N, K]),
    "no type": tensors("F33", [N, K]),
    "negative": tensors("F32", [-N, -K]),
    "a truth value": tensors("F32", [True, N * K]),
    "huge": tensors("F32", [10**18, 10**18]),
    "no rows": tensors("F32", [0, K], 0, b""),
    "no columns": tensors("F32", [10**12, 0], 0, b""),
    "flat": tensors("F32", [N * K]),
    "beyond the file": tensors("F32", [N, K], data=DATA[:-4]),
    "no header": struct.pack("<Q", 2**60) + b"{}",
    "deep": struct.pack("<Q", 10**5) + b"[" * 10**5,
    "nothing": b"",
}


def scores(folder: Path, name: str, content: bytes) -> Any:
    np.savez(folder / "id.npz", logits=LOGITS, labels=LABELS)
    (folder / name).write_bytes(content)
    return evaluate_arrays(folder, "msp").scores


@pytest.mark.parametrize("suffix", ["npy", "npz"])
@pytest.mark.parametrize("case", SOUND)
def test_arrays_of_other_writers_are_read(tmp_path: Path, case: str, suffix: str) -> None:
    content = SOUND[case] if suffix == "npy" else zipped(("logits.npy", SOUND[case]))
    assert scores(tmp_path, f"near.{suffix}", content)["msp/0"].equals(RIGHT["msp/0"])


FILES: dict[str, tuple[str, bytes]] = {
    **{f"npy {case}": ("near.npy", content) for case, content in HEADERS.items()},
    **{f"npz {case}": ("near.npz", zipped(("logits.npy", content))) for case, content in HEADERS.items()},
    **{f"archive {case}": ("near.npz", content) for case, content in ARCHIVES.items()},
    **{f"table {case}": ("near.parquet", content) for case, content in TABLES.items()},
    **{f"tensors {case}": ("near.safetensors", content) for case, content in TENSORS.items()},
}


@pytest.mark.sampled("fuzz", one_in=5)
@pytest.mark.parametrize("case", FILES)
def test_a_file_that_holds_no_arrays_is_refused_by_its_name(tmp_path: Path, case: str) -> None:
    name, content = FILES[case]
    if name.endswith(".safetensors"):
        pytest.importorskip("safetensors")
    if "other rows" in case:  # fewer images are as good as any
        assert scores(tmp_path, name, content).num_rows == 2 * N - 1
        return
    with pytest.raises(SplitsError) as caught:
        scores(tmp_path, name, content)
    assert caught.value.where is not None
    assert caught.value.where.startswith((str(tmp_path / name), "near"))
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "case",
    ["npz ((((", "npy shape of a truth value", "table two columns of one name", "archive two of one name"],
)
def test_what_is_no_array_is_found_where_the_file_is_opened(tmp_path: Path, case: str) -> None:
    name, content = FILES[case]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError) as caught:
        read_sets(tmp_path)
    assert caught.value.where == str(tmp_path / name)


def masked(array: Any) -> Any:
    return np.ma.masked_array(array, mask=np.arange(np.size(array)).reshape(np.shape(array)) == 3)


def tensor(array: Any) -> Any:
    return pytest.importorskip("torch").tensor(array)


MATRICES: dict[str, Callable[[], Any]] = {
    "masked": lambda: masked(NEAR),
    "masked rows": lambda: [masked(row) if n == 4 else row for n, row in enumerate(np.tile(NEAR, 2))],
    "complex": lambda: NEAR + 0j,
    "complex list": lambda: (NEAR + 1j).tolist(),
    "complex tensor": lambda: tensor(NEAR) + 1j,
    "object": lambda: NEAR.astype(object),
    "texts": lambda: NEAR.astype(str),
    "dates": lambda: NEAR.astype("M8[s]"),
    "fields": lambda: np.zeros(N, [("a", "f4")]),
    "truth values": lambda: NEAR > 0,
    "ragged": lambda: [[1.0], [1.0, 2.0]],
    "none": lambda: None,
    "number": lambda: 3.0,
    "flat": lambda: NEAR[:, 0],
    "three axes": lambda: NEAR[None],
    "no rows": lambda: NEAR[:0],
    "no columns": lambda: NEAR[:, :0],
    "other columns": lambda: NEAR[:, :2],
    "NaN": lambda: NEAR * np.nan,
    "infinity": lambda: NEAR / 0.0,
    "beyond float32": lambda: NEAR.astype(np.float64) * 1e300,
    "an offset": lambda: NEAR.astype(np.float64) + 1e12,
    "probabilities": lambda: np.full((N, K), 1 / K),
    "sparse": lambda: tensor(NEAR).to_sparse(),
    "without data": lambda: tensor(NEAR).to("meta"),
    "a dict": lambda: {"logits": NEAR},
    "a set": lambda: {1.0, 2.0},
    "a function": lambda: len,
    "bytes": lambda: NEAR.tobytes(),
}
LABEL_CASES: dict[str, Callable[[], Any]] = {
    "masked": lambda: masked(LABELS),
    "complex": lambda: LABELS + 0j,
    "float": lambda: LABELS.astype(float),
    "short": lambda: LABELS[:-1],
    "long": lambda: [*LABELS, 0],
    "scalar": lambda: 3,
    "column": lambda: LABELS[:, None],
    "texts": lambda: LABELS.astype(str),
    "object": lambda: LABELS.astype(object),
    "negative": lambda: LABELS - 1,
    "beyond the columns": lambda: LABELS + K,
    "unsigned -1": lambda: np.full(N, 2**64 - 1, np.uint64),
    "ragged": lambda: [[1], [1, 2]],
}


@pytest.mark.sampled("fuzz", one_in=4)
@pytest.mark.parametrize("key", ["logits", "features"])
@pytest.mark.parametrize("case", MATRICES)
def test_what_is_no_matrix_is_refused_by_the_name_of_its_set(case: str, key: str) -> None:
    if (case, key) in {("probabilities", "features"), ("an offset", "features")}:
        pytest.skip("as good as any features")
    with np.errstate(all="ignore"):
        near = {"logits": NEAR, key: MATRICES[case]()}
    known = {"logits": LOGITS, "labels": LABELS, **({"features": LOGITS} if key == "features" else {})}
    with pytest.raises(DataError) as caught:
        evaluate_arrays({"id": known, "near": near}, "msp")
    assert caught.value.where in ("near", "own-sets")


@pytest.mark.parametrize("case", LABEL_CASES)
def test_what_are_no_labels_is_refused_by_the_name_of_its_set(case: str) -> None:
    sets = {"id": {"logits": LOGITS, "labels": LABEL_CASES[case]()}, "near": {"logits": NEAR}}
    with pytest.raises(SplitsError) as caught:
        evaluate_arrays(sets, "msp")
    assert caught.value.where in ("id", "own-sets")


def test_an_array_that_masks_nothing_and_a_tensor_with_gradient_are_arrays() -> None:
    known = {"logits": LOGITS, "labels": LABELS}
    for near in (np.ma.masked_array(NEAR), tensor(NEAR).requires_grad_()):
        found = evaluate_arrays({"id": known, "near": {"logits": near}}, "msp").scores
        assert found["msp/0"].equals(RIGHT["msp/0"])
