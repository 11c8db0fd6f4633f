from __future__ import annotations

import contextlib
import io
import os
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.raising import raises
from wordnet_splits.base.errors import SourceError, UnsafeDataError
from wordnet_splits.datasets.sources import open_source
from wordnet_splits.datasets.sources.layouts.unpickle import load_pickle, read_pickle


def read(data: bytes) -> Any:
    return read_pickle(io.BytesIO(data), where="batch", size=len(data))


class Call:
    """Pickles as a call of ``function`` with ``arguments``."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> Any:
        return self.call


@pytest.mark.parametrize(
    "file",
    [
        "cifar-100-python/train",
        "cifar-100-python/test",
        "cifar-100-python/meta",
        "cifar-10-batches-py/test_batch",
        "cifar-10-batches-py/batches.meta",
    ],
)
def test_published_batches_read_as_pickle_reads_them(real_data: Path, file: str) -> None:
    ours: Any = load_pickle(real_data / file)
    with (real_data / file).open("rb") as stream:
        theirs = pickle.load(stream, encoding="latin1")
    assert ours.keys() == theirs.keys()
    for key, value in theirs.items():
        assert np.array_equal(ours[key], value) if key == "data" else ours[key] == value


atoms = st.none() | st.booleans() | st.integers() | st.text() | st.binary()
data = st.recursive(
    atoms,
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.text() | st.binary() | st.integers(), inner)
        | st.tuples(inner, inner)
        | st.tuples(inner)
    ),
)


@settings(max_examples=50)
@given(data, st.integers(0, pickle.HIGHEST_PROTOCOL))
def test_plain_data_survive_every_protocol(value: Any, protocol: int) -> None:
    if protocol == 0 and contains_long_integer(value):
        return  # Python itself cannot read decimal text of more than 4,300 digits
    assert read(pickle.dumps(value, protocol)) == value


def contains_long_integer(value: Any) -> bool:
    return isinstance(value, int) and value.bit_length() > 14_000


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("dtype", ["u1", "<i8", ">i4", "?"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_survive_every_protocol(protocol: int, dtype: str, order: Any) -> None:
    array = np.tile(np.arange(24).reshape(2, 3, 4), (40, 1, 1)).astype(dtype, order=order)
    found = read(pickle.dumps({"data": array, "other": 1}, protocol))["data"]
    assert found.dtype == array.dtype
    assert np.array_equal(found, array)


@pytest.mark.parametrize(
    ("payload", "kind", "named"),
    [
        (Call(os.system, "echo hacked"), UnsafeDataError, "posix.system"),
        (Call(eval, "1"), UnsafeDataError, "eval"),
        (Call(exec, "1"), UnsafeDataError, "exec"),
        (Call(getattr, dict, "pop"), UnsafeDataError, "getattr"),
        (Call(np.load, "x"), UnsafeDataError, "numpy.load"),
        (Call(np.frombuffer, b"x"), UnsafeDataError, "numpy.frombuffer"),
        ({"data": [{"deep": (1, object())}]}, UnsafeDataError, ()),
        ({"labels": {1, 2}}, UnsafeDataError, ()),
        (1.5, UnsafeDataError, ()),
        (np.zeros(3, dtype=object), SourceError, ()),
        (np.zeros(3, dtype=[("a", "i4")]), SourceError, ()),
        (np.zeros(3), SourceError, ()),
    ],
    ids=range(12),  # the payloads print their addresses, which differ between workers
)
@pytest.mark.parametrize("protocol", [0, 2, 4, 5])
def test_everything_but_data_is_refused(
    payload: Any, kind: type[SourceError], named: object, protocol: int
) -> None:
    with raises(kind, where="batch", naming=named) as caught:
        read(pickle.dumps(payload, protocol))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("program", "named"),
    [
        (b"cos\nsystem\n(S'echo hacked'\ntR.", "os.system"),
        (b"(S'echo hacked'\nios\nsystem\n.", "os.system"),
        (b"(cos\nsystem\nS'echo hacked'\no.", "os.system"),
        (b"cnumpy.testing._private.utils\nrunstring\n(S'import os'\n}tR.", "runstring"),
        (b"cnumpy\nndarray.__class__\n.", "ndarray.__class__"),
        (b"\x80\x04\x8c\x05numpy\x8c\x0endarray.ctypes\x93.", "ndarray.ctypes"),
        (b"\x80\x04\x8c\x04os\nx\x8c\x06system\x93.", "system"),
        (b"cnumpy\nndarray\n(tR.", ()),
        (b"cnumpy\nndarray\n)\x81.", "NEWOBJ"),
        (b"}}b.", ()),
        (b"(dS'x'\nR.", ()),
        (b"Pabc\n.", "PERSID"),
        (b"\x82\x01.", "EXT1"),
        (b"\x80\x05\x97.", "NEXT_BUFFER"),
    ],
)
def test_hostile_programs_are_refused_by_name(program: bytes, named: str) -> None:
    with raises(UnsafeDataError, where="batch", naming=named):
        read(program)


def test_nothing_is_run(tmp_path: Path) -> None:
    touched = tmp_path / "touched"
    with pytest.raises(UnsafeDataError):
        read(pickle.dumps({"data": Call(os.mkdir, str(touched))}, 2))
    assert not touched.exists()


def numpy2(shape: bytes, state: bytes) -> bytes:
    """A pickle of one array of dtype u1, by hand: ``shape`` and ``state`` are programs."""
    dtype = b"cnumpy\ndtype\n(S'u1'\nI00\nI01\ntR(I3\nS'|'\nNNNI-1\nI-1\nI0\ntb"
    array = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\ntS'b'\ntR"
    return b"(dS'data'\n" + array + b"(I1\n" + shape + dtype + b"I00\n" + state + b"tbs."


def test_the_array_by_hand_is_right() -> None:
    assert read(numpy2(b"(I2\nI2\nt", b"S'abcd'\n"))["data"].tolist() == [[97, 98], [99, 100]]


@pytest.mark.parametrize(
    ("shape", "state"),
    [
        (b"(I2\nI3\nt", b"S'abcd'\n"),  # bytes are missing
        (b"(I1000000000000\nt", b"S'abcd'\n"),  # a terabyte
        (b"(I-2\nI-2\nt", b"S'abcd'\n"),
        (b"(S'2'\nI2\nt", b"S'abcd'\n"),
        (b"I4\n", b"S'abcd'\n"),
        (b"(I4\nt", b"I4\n"),
        (b"(I2\nI2\nt", b"V\\u20ac\\u20acab\n"),  # text that is no bytes
    ],
)
def test_malformed_arrays_are_refused(shape: bytes, state: bytes) -> None:
    with raises(SourceError, where="batch"):
        read(numpy2(shape, state))


def test_bombs_are_refused_in_little_time_and_memory() -> None:
    with pytest.raises(SourceError):  # a memo of 2**31 entries would be 16 GB in Python's own unpickler
        read(b"\x80\x02" + (b"K\x01r" + struct.pack("<I", 2**31)) * 3)
    doubled = b"(I1\nt" + b"".join(b"p%d\n0g%d\ng%d\n\x86" % (i, i, i) for i in range(64))
    with pytest.raises(SourceError):  # a key that takes 2**64 steps to hash
        read(b"}" + doubled.replace(b"\n0g", b"\ng") + b"I1\ns.")
    one = b"c_codecs\nencode\n(g1\nS'latin1'\ntR"
    text = b"V" + b"x" * 100_000 + b"\np1\n"
    with pytest.raises(SourceError):  # 100 kB copied a thousand times
        read(b"(" + text + one * 1000 + b"l.")
    announced = b"\x80\x04\x8e" + struct.pack("<Q", 2**62) + b"abc"
    with pytest.raises(SourceError):  # bytes that the file does not have
        read(announced)


def test_deep_nesting_does_not_end_the_process() -> None:
    depth = 100_000
    with pytest.raises(SourceError):
        read(b"]" * depth + b"a" * depth + b".")
    value = read(b"]" * depth + b"a" * (depth - 1) + b".")
    assert isinstance(value, list)


def test_every_truncation_is_one_clear_error() -> None:
    whole = pickle.dumps({"labels": [1, 2, 300], "names": ["a", b"b"], "data": np.zeros((2, 3), "u1")}, 2)
    assert read(whole)["labels"] == [1, 2, 300]
    for length in range(len(whole)):
        with raises(SourceError, where="batch"):
            read(whole[:length])


@settings(max_examples=300)
@given(st.binary(max_size=200))
def test_any_bytes_give_a_value_or_a_clear_error(noise: bytes) -> None:
    with contextlib.suppress(SourceError):
        read(noise)


def test_flipped_bytes_of_a_batch_give_a_value_or_a_clear_error() -> None:
    batch = {"labels": [1, 2, 300], "filenames": ["a.png", "b.png"], "data": np.zeros((2, 3), "u1")}
    whole = pickle.dumps(batch, 2)
    clear = 0
    for at in range(len(whole)):
        for value in (0, 46, 82, 255):
            try:
                read(whole[:at] + bytes([value]) + whole[at + 1 :])
            except SourceError:
                clear += 1
    assert clear > 100


def test_files_that_are_none_or_far_too_large(tmp_path: Path) -> None:
    with raises(SourceError, where="absent"):
        load_pickle(tmp_path / "absent")
    with raises(SourceError, where=tmp_path):
        load_pickle(tmp_path)
    os.mkfifo(tmp_path / "pipe")  # opening it would wait for ever
    with raises(SourceError, where="pipe"):
        load_pickle(tmp_path / "pipe")
    with (tmp_path / "huge").open("wb") as stream:
        stream.truncate(2**30 + 1)
    with raises(SourceError, where="huge", naming="1,073,741,824"):
        load_pickle(tmp_path / "huge")
    (tmp_path / "empty").touch()
    with raises(SourceError, where="empty"):
        load_pickle(tmp_path / "empty")


def test_names_that_are_lists_which_share_each_other(tmp_path: Path) -> None:
    shared: list[object] = []
    for _ in range(28):  # 2^28 items, were it written out
        shared = [shared, shared]
    batch = {"data": np.zeros((1, 3072), np.uint8), "fine_labels": [0], "filenames": [shared]}
    (tmp_path / "train").write_bytes(pickle.dumps(batch, protocol=2))
    assert list(open_source("cifar100", tmp_path).scan(["train"])) == []


@pytest.mark.parametrize("opcode", [b"\x8d", b"\x8e"])
def test_a_string_that_claims_exabytes(tmp_path: Path, opcode: bytes) -> None:
    (tmp_path / "train").write_bytes(b"\x80\x04" + opcode + struct.pack("<Q", 1 << 60) + b"abc.")
    with raises(SourceError, where="train"):
        load_pickle(tmp_path / "train")
