"""Every kind of file, altered in place, bytes, text or values: refused in a line, or read without harm."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.hostile.copies import copied, remove, same
from tests.hostile.kind import Kind
from tests.hostile.kinds import KINDS
from tests.hostile.mutations import mutate
from tests.hostile.running import run_in_child

Examples = Callable[[Kind], Path]


@pytest.fixture(scope="module")
def example_of(tmp_path_factory: pytest.TempPathFactory) -> Examples:
    """The folder of a sound example of a kind, made once."""
    folders: dict[Callable[[Path], None], Path] = {}

    def make(kind: Kind) -> Path:
        if kind.make not in folders:
            folders[kind.make] = tmp_path_factory.mktemp("example")
            kind.make(folders[kind.make])
        return folders[kind.make]

    return make


@pytest.mark.sampled("fuzz", one_in=16)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_altered_files_end_in_a_line_or_do_no_harm(kind: Kind, example_of: Examples, tmp_path: Path) -> None:
    whole, place = example_of(kind), tmp_path / "place"
    copied(whole, place)
    ended = run_in_child(kind.command, place)
    assert ended.code == kind.ends, ended.said

    @settings(max_examples=kind.share, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.integers(0, 2**32))
    def alter_and_read(seed: int) -> None:
        rng = Random(seed)
        copied(whole, place)
        target = rng.choice(kind.targets(whole))
        how = mutate(place / target, rng)
        ended = run_in_child(kind.command, place)
        assert not ended.wrong, (target, how, ended.wrong)
        if kind.verified and ended.code == 0:
            assert same(whole / target, place / target), f"{target}, {how}: accepted"

    try:
        alter_and_read()
    finally:
        remove(place)
