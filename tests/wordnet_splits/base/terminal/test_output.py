"""What terminals show: tables and texts fit them."""

from __future__ import annotations

import pytest

from wordnet_splits.base.terminal import output


@pytest.fixture
def terminal(monkeypatch):
    def set_width(columns: int) -> None:
        monkeypatch.setattr(output, "terminal_width", lambda: columns)

    return set_width


FIELDS = [("evidence", "drawn as number 167 of 405 candidates " * 5), ("rule", "{ rest = true }")]


def test_texts_are_wrapped_between_words_on_a_terminal(terminal, capsys):
    terminal(60)
    output.print_fields(FIELDS)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 60
    assert lines[0].startswith("  evidence  drawn as")
    assert lines[1].startswith(" " * 12)
    assert lines[-1] == "  rule      { rest = true }"
    assert " ".join(" ".join(lines[:-1]).split()) == " ".join(f"evidence {FIELDS[0][1]}".split())


def test_a_narrow_table_keeps_its_header_whole(terminal, capsys):
    terminal(40)
    output.print_table(("benchmark", "text"), [("unknown-imagenet-placesval", "word " * 20)])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["benchmark", "text"]
    assert max(map(len, lines)) <= 40
