"""The mechanism of ``make peers``, and the peer whose tests are installed with it."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tools.peers.__main__ import DIFFERENCES
from tools.peers.page import Difference, Outcome, unexplained
from tools.peers.running import PEERS, Peer, folder_of, run
from tools.peers.statements import AGREES, DIFFERS, OUTSIDE, Record

TOY = '''
import wn
from wn import similarity, taxonomy


def test_of_ours():
    """Statements before the first call of ours do not count."""
    unrelated = 1
    depth = similarity.lch
    assert taxonomy.min_depth(None) == 0
    assert similarity.path(None, None, simulate_root=True) == 1
    value = similarity.path(None, None, simulate_root=True)
    assert value == 2


def test_of_others():
    assert 1 == 2
'''


@pytest.fixture
def toy(tmp_path: Path) -> list[Record]:
    pytest.importorskip("wn")
    (tmp_path / "toy_test.py").write_text(TOY, "utf-8")
    return run(Peer("toy", "wn_measures", ("toy_test.py",), "checkout"), tmp_path, tmp_path)


def test_statements_count_from_the_first_call_and_go_on_after_a_failure(toy: list[Record]) -> None:
    assert [(record.line, record.outcome) for record in toy] == [
        (10, DIFFERS),  # None is no synset
        (11, OUTSIDE),
        (12, OUTSIDE),
        (13, OUTSIDE),  # its value would come from outside
    ]
    assert toy[1].detail == "simulate_root"


def test_a_difference_needs_a_reason_and_a_reason_a_difference(toy: list[Record]) -> None:
    outcomes = [Outcome(Peer("toy", "wn_measures", (), "checkout"), "0", toy)]
    assert "test_of_ours, line 10" in unexplained(outcomes, [])[0]
    reason = Difference("toy", "test_of_*", "None is no synset", "min_depth")
    assert unexplained(outcomes, [reason]) == []
    stale = Difference("toy", "test_of_ours", "gone", "max_depth")
    assert unexplained(outcomes, [reason, stale]) == [
        "toy: test_of_ours: no statement differs any more (gone)"
    ]
    absent = Difference("another", "*", "not run")
    assert unexplained(outcomes, [reason, absent]) == []


@pytest.mark.oracle
def test_scikit_learns_own_tests_hold_of_our_metrics(tmp_path: Path) -> None:
    pytest.importorskip("sklearn.metrics.tests.test_ranking", reason="a scikit-learn without its tests")
    (peer,) = (peer for peer in PEERS if peer.name == "scikit-learn")
    folder = folder_of(peer, {}, tmp_path)
    assert folder is not None
    records = run(peer, folder, tmp_path)
    differences = [
        Difference(**entry) for entry in tomllib.loads(DIFFERENCES.read_text("utf-8"))["difference"]
    ]
    outcome = Outcome(peer, "", records)
    assert unexplained([outcome], [d for d in differences if d.peer == peer.name]) == []
    assert sum(record.outcome == AGREES for record in records) > 200
