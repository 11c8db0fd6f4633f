"""How a command line is entered: what the programs import first, which imports next to nothing itself."""

from __future__ import annotations

import os
import signal
from importlib import import_module
from types import FrameType

BAD_INPUT, INTERRUPTED = 2, 130
LITTLE = 2 << 30
"""Bytes of address space below which an unforeseen error is attributed to the limit."""
INTERRUPTION = "interrupted; nothing half-written is left, and the same command continues from here"


def enter(module: str) -> None:
    """Run the ``main`` of ``module``; Ctrl-C while importing and too little memory end in one line."""
    room = _address_space()

    def leave(number: int, frame: FrameType | None) -> None:
        # OpenBLAS raises SIGINT in its own process where it cannot start its threads
        _leave_if_little(room, "SIGINT")
        # nothing has been begun, and an exception inside an import may be taken for a package that is broken
        os.write(2, f"{INTERRUPTION}\n".encode())
        os._exit(INTERRUPTED)

    usual = signal.getsignal(signal.SIGINT)
    if usual is signal.default_int_handler:  # a program started with Ctrl-C ignored goes on ignoring it
        signal.signal(signal.SIGINT, leave)
    try:
        main = import_module(module).main
        signal.signal(signal.SIGINT, usual)
        main()
    except Exception as error:
        # a library that finds no room for its code or its threads fails with an error of any type
        _leave_if_little(room, type(error).__name__)
        raise


def _address_space() -> int | None:
    """Return the bytes of address space that this process may have, None where nobody has set them."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def _leave_if_little(room: int | None, reason: str) -> None:
    """Exit with one line where there is too little room for the libraries: ``reason`` is how one failed."""
    if room is not None and room < LITTLE:
        message = f"error: {room >> 20} MiB of address space (`ulimit -v`) are too few for this program"
        os.write(2, f"{message} ({reason})\n".encode())
        os._exit(BAD_INPUT)
