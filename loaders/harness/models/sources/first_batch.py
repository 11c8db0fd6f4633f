"""Deadlines for programs with loops: a loop of ONNX, TorchScript or torch.export may have no end.

Neither Ctrl-C nor a signal ends such a loop in the main thread. The first batch is computed in a process of
its own, which can be ended; each later batch in another thread, which is abandoned at the deadline. Programs
without loops end, and cost nothing here.
"""

from __future__ import annotations

import atexit
import os
import re
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterable
from concurrent.futures import Future, wait
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any, BinaryIO, Final, TypeVar

import numpy as np
import torch

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.untrusted import MiB

from ..trial import Outcome, try_program

LOOP: Final = re.compile(rb"\b(while|for)\b")
LARGEST_CODE: Final = 64 * MiB
"""Bytes of code in a TorchScript archive that are searched for loops."""
INTERRUPTED: Final = 130
"""Exit code of a process that Ctrl-C ends."""
STOPPING: Final = 10.0
"""Most seconds to wait for the end of a batch that is stopped."""
MORE_TIME: Final = "it has a loop, perhaps without end; give more time with --deadline SECONDS (deadline=)"

T = TypeVar("T")


class DeadlineError(DataError):
    """A program that did not end within its deadline, or ended its process."""


@dataclass(frozen=True)
class FirstBatch:
    """A program with loops: its kind and file, the deadline in seconds, and its name for errors."""

    kind: str
    file: Path
    seconds: float
    where: str

    def load(self) -> None:
        """Load it in another process: a TorchScript program may run a loop as it is loaded."""
        self.compute(None)

    def compute(self, images: np.ndarray[Any, Any] | None, *, dtype: str = "float32", name: str = "") -> None:
        """Compute images in another process, None to load it alone; parameters as of `try_program`."""
        outcome = try_program(
            self.kind, self.file.resolve(), images, seconds=self.seconds, dtype=dtype, name=name
        )
        if outcome == Outcome.ENDED:
            return
        act = "loading it" if images is None else "its first batch"
        if outcome == Outcome.TIMED_OUT:
            message = f"{act} did not end within {self.seconds:g} s"
            raise DeadlineError(message, where=self.where, hint=MORE_TIME)
        raise DeadlineError(f"{act} ended the process that it ran in, with code {outcome}", where=self.where)


def compute_within(
    seconds: float, compute: Callable[[], T], *, where: str, stop: Callable[[], None] | None = None
) -> T:
    """Return ``compute()``, which runs in a daemon thread, so that Ctrl-C and the deadline end the wait.

    ``stop``: ends the computation; without it the thread goes on until the process ends, with code 2 or 130.

    Raises
    ------
    DeadlineError : it did not end within the deadline.
    """
    result: Future[T] = Future()
    gradients = torch.is_grad_enabled()  # the setting is per thread

    def run() -> None:
        try:
            with torch.set_grad_enabled(gradients):
                result.set_result(compute())
        except BaseException as error:
            result.set_exception(error)

    thread = Thread(target=run, daemon=True)
    thread.start()
    code = INTERRUPTED
    try:
        if wait([result], seconds).done:
            return result.result()
        code = DeadlineError.exit_code
        raise DeadlineError(f"a batch did not end within {seconds:g} s", where=where, hint=MORE_TIME)
    finally:
        if not result.done():
            if stop is None:
                atexit.register(_leave, code)
            else:
                stop()
                thread.join(STOPPING)


def _leave(code: int) -> None:
    """End the process at once: a thread of C++ that is left behind aborts it while Python shuts down."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def onnx_has_loops(model: Any) -> bool:
    """Return whether an ONNX model has a Loop, in its graph, a graph of a node, or a function."""
    return any(map(_loops, (model.graph.node, *(function.node for function in model.functions))))


def _loops(nodes: Iterable[Any]) -> bool:
    for node in nodes:
        graphs = [graph for attribute in node.attribute for graph in (attribute.g, *attribute.graphs)]
        if node.op_type == "Loop" or any(_loops(graph.node) for graph in graphs):
            return True
    return False


def torchscript_loops(file: BinaryIO) -> tuple[bool, bool]:
    """Return whether the code of a TorchScript archive has loops, and whether it runs as it is loaded.

    The file is rewound. Code that is too large, or cannot be read, counts as both.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            entries = [entry for entry in archive.infolist() if entry.filename.endswith(".py")]
            if sum(entry.file_size for entry in entries) > LARGEST_CODE:
                return True, True
            code = b"\n".join(map(archive.read, entries))
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError, zlib.error):
        return True, True
    finally:
        file.seek(0)
    loops = LOOP.search(code) is not None
    return loops, loops and b"__setstate__" in code


def exported_has_loops(program: Any) -> bool:
    """Return whether a program of torch.export calls an operator of a higher order, as loops are."""
    return any("higher_order" in str(node.target) for node in program.graph_module.graph.nodes)
