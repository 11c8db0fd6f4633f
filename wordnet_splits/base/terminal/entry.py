"""The entry of the three programs: imported first, it imports next to nothing itself."""

from __future__ import annotations

import os
import signal
from importlib import import_module
from types import FrameType

INTERRUPTED = 130
INTERRUPTION = "interrupted; nothing half-written is left, and the same command continues from here"


def run_main(module: str) -> None:
    """Run the ``main`` of ``module``; Ctrl-C during the imports ends in one line."""

    def exit_at_once(number: int, frame: FrameType | None) -> None:
        # no work has begun, and an exception inside an import may be taken for a broken package
        os.write(2, f"{INTERRUPTION}\n".encode())
        os._exit(INTERRUPTED)

    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:  # a program started with Ctrl-C ignored goes on ignoring it
        signal.signal(signal.SIGINT, exit_at_once)
    main = import_module(module).main
    signal.signal(signal.SIGINT, handler)
    main()
