"""Questions about classes on a terminal: arrow keys, glosses, and the synsets below each candidate."""

from __future__ import annotations

import os
import select
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from wordnet_splits.base.names import printable
from wordnet_splits.propose.catalog_maker import Question, Reply
from wordnet_splits.taxonomy import Taxonomy

KEYS = "up, down: choose - Enter: take - /: another noun - n: no synset - s: later - b: back - q: stop"
UP, DOWN, ENTER, END = "up", "down", "enter", "end"
SHOWN_BELOW = 6
WAIT_FOR_ARROW = 0.2
"""Seconds to wait for the rest of an arrow key's sequence; a lone Escape has none."""


def is_interactive() -> bool:
    """Return whether stdin and stderr are terminals, so that questions can be asked."""
    return _termios() is not None and sys.stdin.isatty() and sys.stderr.isatty()


def _termios() -> ModuleType | None:
    try:
        import termios
    except ImportError:  # Windows
        return None
    return termios


def ask(question: Question) -> str | Reply:
    """Ask about one class on the terminal, until there is an answer."""
    wnids = [c.wnid for c in question.proposal.candidates]
    selected, lines_above, message = 0, 0, ""
    with _single_keys():
        while True:
            lines_above = _draw(_page(question, wnids, selected, message), lines_above)
            key = _read_key()
            message = ""
            if key == UP and wnids:
                selected = (selected - 1) % len(wnids)
            elif key == DOWN and wnids:
                selected = (selected + 1) % len(wnids)
            elif key == ENTER and wnids:
                return wnids[selected]
            elif key.isdigit() and 0 < int(key) <= len(wnids):
                selected = int(key) - 1
            elif key == "/":
                word = _read_line("noun, synset or wnid: ")
                if senses := _senses(word, question.taxonomy):
                    wnids, selected = senses, 0
                else:
                    message = f"{printable(word)!r} is not a noun of WordNet"
                lines_above = 0
            elif key == "n":
                return ""
            elif key in ("s", "b", "q", END):
                return {"s": Reply.LATER, "b": Reply.BACK}.get(key, Reply.STOP)


def _senses(word: str, taxonomy: Taxonomy) -> list[str]:
    """Return the wnids of a wnid, a synset name or a noun; none for any other word."""
    text = "_".join(word.split())
    if text in taxonomy:
        return [text]
    index = taxonomy.lemma_index()
    lemma, dot, number = text.lower().rpartition(".n.")
    senses = index.get(lemma, ()) if dot else ()
    if dot and number.isdigit() and 0 < int(number) <= len(senses):
        return [senses[int(number) - 1]]
    return list(taxonomy.senses(text)) if text else []


def _page(question: Question, wnids: list[str], selected: int, message: str) -> list[str]:
    proposal, taxonomy = question.proposal, question.taxonomy
    superclass = f" ({proposal.superclass})" if proposal.superclass else ""
    lines = ["", f"[{question.number} of {question.total}] {proposal.name}{superclass}: {proposal.reason}"]
    shares = {c.wnid: c.share for c in proposal.candidates}
    for n, wnid in enumerate(wnids):
        share = f"{100 * shares[wnid]:3.0f}%" if wnid in shares else "    "
        mark = ">" if n == selected else " "
        lines.append(f"{mark} {n + 1} {share} {taxonomy.name(wnid)}: {taxonomy.first_definition(wnid)}")
    if wnids:
        lines += [f"      below it: {text}" for text in _below(question, wnids[selected])]
    lines += [message] if message else []
    return [*lines, KEYS]


def _below(question: Question, wnid: str) -> Iterator[str]:
    taxonomy = question.taxonomy
    children = [taxonomy.lemmas(w)[0].replace("_", " ") for w in taxonomy.children(wnid)]
    yield _first_names(children) if children else "nothing"
    descendants = taxonomy.descendants(wnid)
    if classes := [name for name, answer in question.synsets.items() if answer in descendants]:
        yield f"your classes {_first_names(classes)}"


def _first_names(names: list[str]) -> str:
    rest = f" and {len(names) - SHOWN_BELOW} more" if len(names) > SHOWN_BELOW else ""
    return ", ".join(names[:SHOWN_BELOW]) + rest


def _draw(lines: list[str], lines_above: int) -> int:
    """Write lines over the ``lines_above``, each cut to the width of the terminal; return their number."""
    width = max(shutil.get_terminal_size().columns - 1, 20)
    up = f"\x1b[{lines_above}A\r\x1b[J" if lines_above else ""
    sys.stderr.write(up + "".join(f"{printable(line, width * 4)[:width]}\r\n" for line in lines))
    sys.stderr.flush()
    return len(lines)


@contextmanager
def _single_keys() -> Iterator[None]:
    """Read keys one by one and without echo; Ctrl-C works as before."""
    import termios
    import tty

    before = termios.tcgetattr(sys.stdin.fileno())
    try:
        tty.setcbreak(sys.stdin.fileno(), termios.TCSADRAIN)
        yield
    finally:
        termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, before)


def _read_key() -> str:
    """Return the next key: a character, or the name of an arrow, Enter, or the end of the input."""
    byte = os.read(sys.stdin.fileno(), 1)
    if not byte or byte == b"\x04":
        return END
    if byte in (b"\r", b"\n"):
        return ENTER
    if byte == b"\x1b":
        rest = b""
        while len(rest) < 2 and select.select([sys.stdin.fileno()], [], [], WAIT_FOR_ARROW)[0]:
            rest += os.read(sys.stdin.fileno(), 1)
        return {b"[A": UP, b"OA": UP, b"[B": DOWN, b"OB": DOWN}.get(rest, "")
    return {b"k": UP, b"j": DOWN}.get(byte, byte.decode("latin-1"))


def _read_line(prompt: str) -> str:
    """Return a typed line, echoed while it is typed."""
    sys.stderr.write(prompt)
    sys.stderr.flush()
    typed = b""
    while (byte := os.read(sys.stdin.fileno(), 1)) not in (b"\r", b"\n", b"", b"\x04"):
        typed = typed[:-1] if byte in (b"\x7f", b"\b") else typed + byte
        text = printable(typed.decode("utf-8", "ignore"))
        sys.stderr.write(f"\r\x1b[K{prompt}{text}")
        sys.stderr.flush()
    sys.stderr.write("\r\n")
    return typed.decode("utf-8", "ignore").strip()
