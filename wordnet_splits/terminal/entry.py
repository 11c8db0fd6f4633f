"""The entry of the three programs: imported first, it imports next to nothing itself."""

from __future__ import annotations

import os
import signal
from importlib import import_module
from types import FrameType

BAD_INPUT, INTERRUPTED = 2, 130
LEAST_ADDRESS_SPACE = 2 << 30
"""Bytes of address space below which an unforeseen error is blamed on the limit."""
INTERRUPTION = "interrupted; nothing half-written is left, and the same command continues from here"


def run_main(module: str) -> None:
    """Run the ``main`` of ``module``; Ctrl-C while importing and too little memory end in one line."""
    limit = _address_space()

    def exit_at_once(number: int, frame: FrameType | None) -> None:
        # OpenBLAS raises SIGINT in its own process where it cannot start its threads
        _exit_if_short(limit, "SIGINT")
        # no work has begun, and an exception inside an import may be taken for a broken package
        os.write(2, f"{INTERRUPTION}\n".encode())
        os._exit(INTERRUPTED)

    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:  # a program started with Ctrl-C ignored goes on ignoring it
        signal.signal(signal.SIGINT, exit_at_once)
    try:
        main = import_module(module).main
        signal.signal(signal.SIGINT, handler)
        main()
    except Exception as error:
        # a library without memory for its code or its threads fails with an error of any type
        _exit_if_short(limit, type(error).__name__)
        raise


def _address_space() -> int | None:
    """Return the limit of this process's address space in bytes, None where there is none."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def _exit_if_short(limit: int | None, reason: str) -> None:
    """Exit with one line if the limit is too low for the libraries; ``reason`` is how one of them failed."""
    if limit is not None and limit < LEAST_ADDRESS_SPACE:
        message = f"error: {limit >> 20} MiB of address space (`ulimit -v`) are too few for this program"
        os.write(2, f"{message} ({reason})\n".encode())
        os._exit(BAD_INPUT)
