"""Try a program from a file in a separate process with a deadline, since an infinite loop cannot be stopped.

This file is also the script of that process: ``python trial.py KIND FILE DTYPE INPUT SECONDS``, which reads
images from its standard input. It imports nothing of ours, and ends with a code of `Outcome`.
"""

from __future__ import annotations

import faulthandler
import io
import os
import subprocess
import sys
from enum import IntEnum
from pathlib import Path
from typing import Any, Final

import numpy as np

DEADLINE: Final = 60.0
"""Most seconds for a batch of a program with loops."""
STARTING: Final = 120.0
"""Additional seconds for the process to import its libraries."""


class Outcome(IntEnum):
    """Exit codes; errors of the program are raised again, and reported, in the main process."""

    ENDED = 0
    TIMED_OUT = 1  # faulthandler's exit status
    NO_LIBRARY = 3


def try_program(
    kind: str, file: Path, images: np.ndarray[Any, Any] | None, *, seconds: float, dtype: str, name: str
) -> Outcome | int:
    """Load a program in another process, compute some images, and return how that ended.

    Parameters
    ----------
    kind : ``onnx``, ``torchscript`` or ``exported``.
    images : of a batch, None to load the program alone.
    seconds : the deadline.
    dtype : torch's name of the type of the images.
    name : of ONNX's input.

    Returns
    -------
    An `Outcome`, or the negative number of the signal that ended the process.
    """
    content = io.BytesIO()
    if images is not None:
        np.save(content, images, allow_pickle=False)
    command = [sys.executable, "-P", __file__, kind, str(file), dtype, name, str(seconds)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    try:
        ended = subprocess.run(
            command,
            input=content.getvalue(),
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=seconds + STARTING,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Outcome.TIMED_OUT
    return ended.returncode


def _compute(kind: str, file: str, dtype: str, name: str, images: np.ndarray[Any, Any] | None) -> None:
    """Load a program, and compute images where there are any."""
    if kind == "onnx":
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
        if images is not None:
            session.run(None, {name: images})
        return
    import torch

    load: Any = torch.jit.load if kind == "torchscript" else torch.export.load
    program = load(file)
    if images is not None:
        module = program if kind == "torchscript" else program.module()
        with torch.no_grad():
            module(torch.from_numpy(images).to(getattr(torch, dtype)))


def main(arguments: list[str]) -> Outcome:
    """Do what `try_program` asks for."""
    kind, file, dtype, name, seconds = arguments
    content = sys.stdin.buffer.read()
    images = np.load(io.BytesIO(content), allow_pickle=False) if content else None
    try:
        __import__("onnxruntime" if kind == "onnx" else "torch")
    except Exception:
        return Outcome.NO_LIBRARY
    with open(os.devnull, "w") as nowhere:
        # a C thread ends the process even while running code holds Python's lock
        faulthandler.dump_traceback_later(float(seconds), exit=True, file=nowhere)
        try:
            _compute(kind, file, dtype, name, images)
        except Exception:
            return Outcome.ENDED
        finally:
            faulthandler.cancel_dump_traceback_later()
    return Outcome.ENDED


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))
