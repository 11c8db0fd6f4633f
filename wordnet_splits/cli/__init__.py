"""The command line. This module is what the programs import first, and imports next to nothing itself."""

from __future__ import annotations

import os
import signal
from importlib import import_module
from typing import Any

INTERRUPTED = 130
INTERRUPTION = "interrupted; nothing half-written is left, and the same command continues from here"


def program() -> None:
    """Run ``wordnet-splits``."""
    enter(f"{__name__}.main")


def enter(module: str) -> None:
    """Run the ``main`` of ``module``; Ctrl-C while it is imported ends in one line, too."""
    usual = signal.getsignal(signal.SIGINT)
    if usual is signal.default_int_handler:  # a program started with Ctrl-C ignored goes on ignoring it
        signal.signal(signal.SIGINT, _leave)
    main = import_module(module).main
    signal.signal(signal.SIGINT, usual)
    main()


def _leave(*_: Any) -> None:
    # nothing has been begun, and an exception inside an import may be taken for a package that is broken
    os.write(2, f"{INTERRUPTION}\n".encode())
    os._exit(INTERRUPTED)
