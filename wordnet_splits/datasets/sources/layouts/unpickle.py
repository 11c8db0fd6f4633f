"""Reads CIFAR's pickles without running them.

A pickle is a program. This is an interpreter for the small part of its language that dictionaries, lists,
strings, whole numbers and arrays need: it takes the parsed instructions of ``pickletools``, calls
nothing but the constructors below, and stops at the first instruction or global outside that part. Python's
own unpickler is not used, because even with ``find_class`` closed a few bytes can make it allocate
gigabytes of memo.
"""

from __future__ import annotations

import math
import os
import pickletools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, NoReturn, cast

import numpy as np
import numpy.typing as npt

from wordnet_splits.base.errors import SourceError, UnsafeDataError
from wordnet_splits.base.untrusted import open_untrusted

LARGEST_FILE = 1 << 30  # bytes; the largest published batch has 155 MB
_LARGEST_RANK = 8
_NUMBERS = frozenset("?bBhHiIlLqQ")  # numpy's codes of the integer types


def load_pickle(path: Path) -> object:
    """Return the content of the pickle at ``path``.

    That is dict, list, tuple, str, bytes, int, bool, None, and integer arrays as values of the outermost
    dict. Byte strings of Python 2 become str by Latin-1, as ``pickle.load(encoding="latin1")`` does.

    Raises UnsafeDataError, naming the global, for a pickle that asks for anything else, and SourceError for
    a file that is truncated, not a pickle, unreadable or larger than 1 GiB.
    """
    with open_untrusted(path, largest=LARGEST_FILE, error=SourceError) as file:
        if not (size := os.fstat(file.fileno()).st_size):
            raise _no_pickle(str(path))
        return read_pickle(file, where=str(path), size=size)


class _Bounded:
    """A stream of ``size`` bytes that allocates no more than that for a string that claims exabytes."""

    def __init__(self, stream: BinaryIO, size: int) -> None:
        self._stream, self._size = stream, size
        self.readline, self.tell = stream.readline, stream.tell

    def read(self, count: int) -> bytes:
        return self._stream.read(min(count, self._size))


def read_pickle(stream: BinaryIO, *, where: str, size: int) -> object:
    """Return the content of the pickle of ``size`` bytes in ``stream``, as ``load_pickle`` does."""
    machine = _Machine(where, size)
    try:
        for opcode, argument, _ in pickletools.genops(cast(Any, _Bounded(stream, size))):
            if opcode.name == "STOP":
                return machine.result()
            machine.step(opcode.name, argument)
    except (ValueError, IndexError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise _no_pickle(where) from error
    raise _no_pickle(where)


def _no_pickle(where: str) -> SourceError:
    return SourceError("truncated, or not a pickle", where=where, hint="fetch the dataset again")


_MARK = object()  # where a run of items on the stack begins


@dataclass(frozen=True)
class _Global:
    """A name the pickle may use; only ``REDUCE`` does anything with it."""

    name: str


class _Dtype:
    """A dtype under construction: an integer type and its byte order."""

    def __init__(self, code: object, align: object = False, copy: object = True) -> None:
        if not isinstance(code, str) or not (
            code in _NUMBERS or (code[:1] in "iub" and code[1:] in set("1248"))
        ):
            raise ValueError("an array of something other than whole numbers")
        self.value = np.dtype(code)

    def build(self, state: object) -> None:
        if not isinstance(state, tuple) or len(state) < 2 or state[1] not in ("|", "<", ">", "="):
            raise ValueError("not the state of a dtype")
        if any(part is not None for part in state[2:5]):  # sub-array, names, fields
            raise ValueError("an array of records")
        self.value = self.value.newbyteorder(state[1])


class _Array:
    """An array under construction. Its bytes stay where they are until the pickle has ended."""

    def __init__(self, *_: object) -> None:
        self.shape: tuple[int, ...] = (0,)
        self.dtype = np.dtype("u1")
        self.fortran = False
        self.data: str | bytes | bytearray = b""

    def build(self, state: object) -> None:
        if not isinstance(state, tuple) or len(state) != 5:
            raise ValueError("not the state of an array")
        _, shape, dtype, fortran, data = state
        self.fill(data, dtype, shape, bool(fortran))

    def fill(self, data: object, dtype: object, shape: object, fortran: bool) -> None:
        if (
            not isinstance(dtype, _Dtype)
            or not isinstance(data, str | bytes | bytearray)
            or not isinstance(shape, tuple)
        ):
            raise ValueError("not the state of an array")
        if len(shape) > _LARGEST_RANK or not all(isinstance(n, int) and 0 <= n <= len(data) for n in shape):
            raise ValueError("not the shape of an array")
        if math.prod(shape) * dtype.value.itemsize != len(data):
            raise ValueError("an array whose bytes do not fill its shape")
        self.shape, self.dtype, self.fortran, self.data = shape, dtype.value, fortran, data

    def finish(self) -> npt.NDArray[np.integer]:
        data = self.data.encode("latin-1") if isinstance(self.data, str) else self.data
        flat: npt.NDArray[np.integer] = np.frombuffer(data, self.dtype)
        return flat.reshape(self.shape, order="F" if self.fortran else "C")


def _from_buffer(data: object, dtype: object, shape: object, order: object) -> _Array:
    array = _Array()
    array.fill(data, dtype, shape, order == "F")
    return array


def _encode(text: object, encoding: object) -> bytes:
    """Python 3 writes bytes under protocol 2 as text that is to be encoded."""
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
        raise ValueError("an encoding other than Latin-1")
    return text.encode("latin-1")


_NUMPY = ("numpy.core", "numpy._core")  # before and since numpy 2
_CALLABLE: Mapping[str, Callable[..., object]] = MappingProxyType(
    {f"{numpy}.multiarray._reconstruct": _Array for numpy in _NUMPY}
    | {f"{numpy}.numeric._frombuffer": _from_buffer for numpy in _NUMPY}
    | {f"{builtins}.bytes": lambda: b"" for builtins in ("__builtin__", "builtins")}  # b"" in protocol 2
    | {"numpy.dtype": _Dtype, "_codecs.encode": _encode}
)
_ALLOWED = frozenset(_CALLABLE) | {"numpy.ndarray"}


class _Machine:
    """The stack, the memo and the instructions of the pickle language that data needs."""

    def __init__(self, where: str, size: int) -> None:
        self.where = where
        self.budget = size  # bytes that may be copied out of the file: each of its bytes once
        self.stack: list[object] = []
        self.memo: dict[int, object] = {}

    def step(self, name: str, argument: Any) -> None:
        if name in _PUSHES:
            self.stack.append(argument)
        elif name in _MEMO_PUTS:
            self.memo[len(self.memo) if argument is None else argument] = self.stack[-1]
        elif name in _MEMO_GETS:
            self.stack.append(self.memo[argument])
        elif name in _ACTIONS:
            _ACTIONS[name](self)
        elif name == "GLOBAL":
            self.push_global(str(argument).replace(" ", "."))
        elif name == "INST":
            self.refuse(str(argument).replace(" ", "."))
        elif name not in _IGNORED:
            self.refuse(f"the instruction {name}")

    def refuse(self, request: str) -> NoReturn:
        if not request.isprintable() or len(request) > 100:
            request = ascii(request[:100])
        message = f"a dataset must not use {request} in its pickle; nothing was run"
        raise UnsafeDataError(message, where=self.where, hint="fetch the dataset again from its publisher")

    def push_global(self, name: str) -> None:
        if name not in _ALLOWED:
            self.refuse(name)
        self.stack.append(_Global(name))

    def pop(self) -> object:
        if self.stack[-1] is _MARK:
            raise ValueError("an item is missing")
        return self.stack.pop()

    def pop_to_mark(self) -> list[object]:
        start = len(self.stack) - 1
        while self.stack[start] is not _MARK:
            start -= 1
            if start < 0:
                raise ValueError("a mark is missing")
        items = self.stack[start + 1 :]
        del self.stack[start:]
        return items

    def push_tuple(self, count: int) -> None:
        items = [self.pop() for _ in range(count)]
        self.stack.append(tuple(reversed(items)))

    def extend(self, items: list[object]) -> None:
        target = self.stack[-1]
        if not isinstance(target, list):
            raise TypeError("items for something that is not a list")
        target.extend(items)

    def update(self, items: list[object]) -> None:
        target = self.stack[-1]
        if not isinstance(target, dict):
            raise TypeError("items for something that is not a dictionary")
        # Other keys could be nested tuples that take very long to hash.
        if not all(isinstance(key, str | bytes | int) for key in items[::2]):
            raise TypeError("a key that is neither text nor number")
        target.update(zip(items[::2], items[1::2], strict=True))

    def push_dict(self, items: list[object]) -> None:
        self.stack.append({})
        self.update(items)

    def global_from_stack(self) -> None:
        name, module = self.pop(), self.pop()
        self.push_global(f"{module}.{name}")

    def reduce(self) -> None:
        arguments, function = self.pop(), self.pop()
        if (
            not isinstance(function, _Global)
            or function.name not in _CALLABLE
            or not isinstance(arguments, tuple)
        ):
            self.refuse(f"a call of {function.name if isinstance(function, _Global) else 'a value'}")
        made = _CALLABLE[function.name](*arguments)
        if isinstance(made, bytes):
            self.spend(len(made))
        self.stack.append(made)

    def spend(self, count: int) -> None:
        self.budget -= count
        if self.budget < 0:
            raise ValueError("one string copied many times over")

    def build(self) -> None:
        state, target = self.pop(), self.stack[-1]
        if not isinstance(target, _Dtype | _Array):
            self.refuse("the state of an object")
        target.build(state)

    def result(self) -> object:
        """Return the last item left; its arrays, down to one level below it, become numpy arrays."""
        top = self.pop()
        if self.stack:
            raise ValueError("more than one item")
        arrays = [v for v in top.values() if isinstance(v, _Array)] if isinstance(top, dict) else []
        self.spend(sum(len(array.data) for array in arrays if isinstance(array.data, str)))
        if isinstance(top, dict):
            return {key: value.finish() if isinstance(value, _Array) else value for key, value in top.items()}
        return top.finish() if isinstance(top, _Array) else top


_PUSHES = frozenset(
    {"INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4"}
    | {"STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"}
    | {"BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8"}
)
_MEMO_PUTS = frozenset({"PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"})
_MEMO_GETS = frozenset({"GET", "BINGET", "LONG_BINGET"})
_IGNORED = frozenset({"PROTO", "FRAME"})
_ACTIONS: Mapping[str, Callable[[_Machine], None]] = MappingProxyType(
    {
        "MARK": lambda m: m.stack.append(_MARK),
        "NONE": lambda m: m.stack.append(None),
        "NEWTRUE": lambda m: m.stack.append(True),
        "NEWFALSE": lambda m: m.stack.append(False),
        "EMPTY_DICT": lambda m: m.stack.append({}),
        "EMPTY_LIST": lambda m: m.stack.append([]),
        "EMPTY_TUPLE": lambda m: m.stack.append(()),
        "TUPLE": lambda m: m.stack.append(tuple(m.pop_to_mark())),
        "TUPLE1": lambda m: m.push_tuple(1),
        "TUPLE2": lambda m: m.push_tuple(2),
        "TUPLE3": lambda m: m.push_tuple(3),
        "LIST": lambda m: m.stack.append(m.pop_to_mark()),
        "DICT": lambda m: m.push_dict(m.pop_to_mark()),
        "APPEND": lambda m: m.extend([m.pop()]),
        "APPENDS": lambda m: m.extend(m.pop_to_mark()),
        "SETITEM": lambda m: m.update([m.pop(), m.pop()][::-1]),
        "SETITEMS": lambda m: m.update(m.pop_to_mark()),
        "STACK_GLOBAL": lambda m: m.global_from_stack(),
        "REDUCE": lambda m: m.reduce(),
        "BUILD": lambda m: m.build(),
    }
)
