"""`make quick` runs the tests of the rooms that a change touches."""

from __future__ import annotations

import pytest

from tests.touched import USUAL, rooms_of_tests


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (["wordnet_splits/benchmark/rules/engine.py"], ["tests/wordnet_splits/benchmark/rules"]),
        (["wordnet_splits/remote.py", "docs/index.md"], ["tests/wordnet_splits"]),
        (["loaders/harness/results/table.py"], ["tests/loaders/harness/results"]),
        (
            ["tests/test_readme.py", "fix_resize/cli/main.py"],
            ["tests/fix_resize/cli", "tests/test_readme.py"],
        ),
        (["wordnet_splits/remote.py", "wordnet_splits/base/files.py"], ["tests/wordnet_splits"]),
        (["README.md"], [f"tests/wordnet_splits/{room}" for room in USUAL]),
    ],
)
def test_a_change_has_the_tests_of_its_rooms(files: list[str], expected: list[str]) -> None:
    assert rooms_of_tests(files) == expected
