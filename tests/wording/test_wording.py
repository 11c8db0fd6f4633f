"""The wording of the programs: whoever changes it sees the difference in one file and writes it again."""

from __future__ import annotations

import difflib

import pytest

from tests.wording.pages import HERE, PROGRAMS, page


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_a_program_prints_is_what_its_page_says(program: str) -> None:
    stored = (HERE / f"{program}.txt").read_text("utf-8")
    printed = page(program)
    lines = difflib.unified_diff(stored.splitlines(), printed.splitlines(), "stored", "printed", lineterm="")
    assert printed == stored, "\n".join(["the wording changed; read this, then `make wording`:", *lines])
