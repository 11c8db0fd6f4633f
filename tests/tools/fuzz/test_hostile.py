"""A few cases of ``make fuzz``, of one kind of file in twelve; none may end badly.

What a case may take is counted in seconds of the processor, so that a busy machine changes nothing.
"""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tools.fuzz.kinds import kinds
from tools.fuzz.page import as_table
from tools.fuzz.running import ACCEPTED, Result, cases, fuzz
from tools.fuzz.zygote import Ended

SEED = 1


@pytest.mark.parametrize("torch", [False, pytest.param(True, marks=pytest.mark.fuzz)])
def test_hostile_files_end_in_a_line_or_do_no_harm(torch: bool, tmp_path: Path) -> None:
    all_cases = cases(100)
    assert {case.kind.name for case in all_cases} == {kind.name for kind in kinds()}
    sampled = [kind.name for kind in kinds() if kind.torch is torch][3::12]
    chosen = [case for case in all_cases if case.kind.name in sampled]
    if not chosen:
        pytest.skip("torch is not installed")
    results = list(fuzz(chosen, SEED, tmp_path, workers=1))
    assert len(results) == len(chosen)
    assert [str(result) for result in results if result.wrong] == []


@pytest.mark.parametrize(
    ("ended", "verified_wrong", "column"),
    [
        (Ended(2, "error: no", 1.0, 1), "", "refused"),
        (Ended(1, "PROBLEM", 1.0, 1), "", "refused"),
        (Ended(0, "", 1.0, 1), "", "read"),
        (Ended(1, "Traceback (most recent call last):\nKeyError", 1.0, 1), "", "tracebacks"),
        (Ended(-signal.SIGALRM, "", 1.0, 1), "", "hangs (> 60 s)"),
        (Ended(0, "", 61.0, 1), "", "hangs (> 60 s)"),
        (Ended(0, "", 1.0, 2 << 30), "", "over 1 GiB"),
        (Ended(0, "", 1.0, 1), ACCEPTED, "accepted"),
        (Ended(-9, "", 1.0, 1), "", "otherwise wrong"),
        (Ended(2, "no", 1.0, 1), "", "otherwise wrong"),
        (Ended(2, "error: \x1b", 1.0, 1), "", "otherwise wrong"),
        (Ended(5, "", 1.0, 1), "", "otherwise wrong"),
    ],
)
def test_every_end_is_in_one_column(ended: Ended, verified_wrong: str, column: str) -> None:
    result = Result(cases(1)[0], "", ended, ended.wrong or verified_wrong)
    header, _, row, _ = as_table([result]).splitlines()
    counts = dict(zip(header.split(" | ")[1:], row.split(" | ")[1:], strict=True))
    assert {name.removesuffix(" |") for name, count in counts.items() if count.strip(" |") == "1"} == {
        "tried",
        column,
    }
