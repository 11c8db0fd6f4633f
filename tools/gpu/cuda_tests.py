"""The first step: the tests that run on every device at hand, on this one; none may be skipped."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

import pytest

from .figures import Figures, step_arguments

FILES = ("tests/tools/gpu/test_devices.py", "tests/fix_resize/test_torch.py")
TINY = "epoch or first_rank"


class _Counting:
    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call" or report.outcome != "passed":
            self.counts[report.outcome] += 1


def main() -> int:
    """Run the tests; return 1 if a test failed or was skipped, or if none ran."""
    options = step_arguments("CUDA tests").parse_args()
    kind = options.device.partition(":")[0]
    expression = f"{kind} and ({TINY})" if options.tiny else kind
    counting = _Counting()
    pytest.main(["-k", expression, "-p", "no:xdist", "-p", "no:randomly", *FILES], plugins=[counting])
    figures = Figures(options.figures)
    for outcome in ("passed", "failed", "skipped"):
        figures.add(f"tests {outcome}", counting.counts[outcome])
    return int(counting.counts["passed"] == 0 or sum(counting.counts.values()) > counting.counts["passed"])


if __name__ == "__main__":
    sys.exit(main())
