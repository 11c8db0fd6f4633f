"""The processes of one torchrun end together, with one line; settings of deterministic kernels."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from loaders.harness.models.reproducibility import deterministic_kernels
from tests.loaders.harness.ranks import run_two_ranks
from wordnet_splits.base.terminal.entry import INTERRUPTED, INTERRUPTION

PROGRAM = """
import os, signal, sys, threading
from wordnet_splits.base.terminal.runner import Program, run

def extract() -> int:
    "Share a step."
    from loaders.harness.models.reproducibility import current_ranks
    ranks = current_ranks()
    with ranks.all_ranks("the extraction"):
        if ranks.rank == 1:
            signal.raise_signal(signal.SIGINT)
    raise AssertionError("both went on")

app = Program("x", "x", [])
app.command("extract", examples=["x"])(extract)
sys.exit(run(app, ["extract"], "x"))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no gloo over loopback")
def test_ctrl_c_on_one_rank_ends_the_other_with_one_line(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    ranks = run_two_ranks(["-c", PROGRAM], tmp_path)
    assert [code for code, _, _ in ranks] == [2, INTERRUPTED]
    said = [errors.splitlines() for _, _, errors in ranks]
    assert said[1] == [INTERRUPTION]
    assert len(said[0]) == 1
    assert said[0][0].startswith("error: rank 0: the extraction ended on another rank")


def test_deterministic_kernels_fill_no_memory_and_restore_the_settings() -> None:
    def settings() -> tuple[object, ...]:
        return (
            torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled(),
            torch.utils.deterministic.fill_uninitialized_memory,
            torch.backends.cudnn.deterministic,
            torch.backends.cudnn.benchmark,
            torch.backends.cudnn.allow_tf32,
            torch.backends.cuda.matmul.allow_tf32,
        )

    before = settings()
    with deterministic_kernels(full_float32=True):
        assert settings() == (True, True, False, True, False, False, False)
    assert settings() == before
