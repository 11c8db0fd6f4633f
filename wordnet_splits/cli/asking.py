"""Asking about one class on a terminal: arrow keys, glosses, and what lies below each synset."""

from __future__ import annotations

import os
import select
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from wordnet_splits.base.names import printable
from wordnet_splits.propose.making import Question, Reply
from wordnet_splits.taxonomy import Taxonomy

KEYS = "up, down: choose - Enter: take - /: another noun - n: no synset - s: later - b: back - q: stop"
UP, DOWN, ENTER, END = "up", "down", "enter", "end"
SHOWN_BELOW = 6
WAIT_FOR_ARROW = 0.2
"""Seconds that the rest of an arrow key's sequence may take; a lone Escape has none."""


def terminal() -> bool:
    """Return whether somebody can be asked: keys come from a terminal, and one shows what is written."""
    return _termios() is not None and sys.stdin.isatty() and sys.stderr.isatty()


def _termios() -> ModuleType | None:
    try:
        import termios
    except ImportError:  # Windows
        return None
    return termios


def ask(question: Question) -> str | Reply:
    """Ask about one class on the terminal, until there is an answer."""
    offered = [c.wnid for c in question.proposal.candidates]
    at, drawn, said = 0, 0, ""
    with _single_keys():
        while True:
            drawn = _draw(_page(question, offered, at, said), drawn)
            key = _key()
            said = ""
            if key == UP and offered:
                at = (at - 1) % len(offered)
            elif key == DOWN and offered:
                at = (at + 1) % len(offered)
            elif key == ENTER and offered:
                return offered[at]
            elif key.isdigit() and 0 < int(key) <= len(offered):
                at = int(key) - 1
            elif key == "/":
                word = _line("noun, synset or wnid: ")
                found = _senses(word, question.taxonomy)
                said = "" if found else f"{printable(word)!r} is no noun of WordNet"
                offered, at = (found, 0) if found else (offered, at)
                drawn = 0
            elif key == "n":
                return ""
            elif key in ("s", "b", "q", END):
                return {"s": Reply.LATER, "b": Reply.BACK}.get(key, Reply.STOP)


def _senses(word: str, taxonomy: Taxonomy) -> list[str]:
    text = "_".join(word.split())
    if text in taxonomy:
        return [text]
    index = taxonomy.lemma_index()
    lemma, dot, number = text.lower().rpartition(".n.")
    senses = index.get(lemma, ()) if dot else ()
    if dot and number.isdigit() and 0 < int(number) <= len(senses):
        return [senses[int(number) - 1]]
    return list(taxonomy.senses(text)) if text else []


def _page(question: Question, offered: list[str], at: int, said: str) -> list[str]:
    p, taxonomy = question.proposal, question.taxonomy
    of = f" ({p.superclass})" if p.superclass else ""
    lines = ["", f"[{question.number} of {question.of}] {p.name}{of}: {p.reason}"]
    shares = {c.wnid: c.share for c in p.candidates}
    for n, wnid in enumerate(offered):
        share = f"{100 * shares[wnid]:3.0f}%" if wnid in shares else "    "
        mark = ">" if n == at else " "
        lines.append(f"{mark} {n + 1} {share} {taxonomy.name(wnid)}: {taxonomy.first_definition(wnid)}")
    if offered:
        lines += [f"      below it: {text}" for text in _below(question, offered[at])]
    lines += [said] if said else []
    return [*lines, KEYS]


def _below(question: Question, wnid: str) -> Iterator[str]:
    taxonomy = question.taxonomy
    children = [taxonomy.lemmas(w)[0].replace("_", " ") for w in taxonomy.children(wnid)]
    yield _some(children) if children else "nothing"
    under = taxonomy.descendants(wnid)
    yours = [name for name, chosen in question.chosen.items() if chosen in under]
    if yours:
        yield f"your classes {_some(yours)}"


def _some(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN_BELOW} more" if len(names) > SHOWN_BELOW else ""
    return ", ".join(names[:SHOWN_BELOW]) + more


def _draw(lines: list[str], drawn: int) -> int:
    """Write lines over the ``drawn`` ones before; every one fits the width, so that they can be counted."""
    width = max(shutil.get_terminal_size().columns - 1, 20)
    shown = [printable(line, width * 4)[:width] for line in lines]
    up = f"\x1b[{drawn}A\r\x1b[J" if drawn else ""
    sys.stderr.write(up + "".join(f"{line}\r\n" for line in shown))
    sys.stderr.flush()
    return len(shown)


@contextmanager
def _single_keys() -> Iterator[None]:
    """Have keys come one by one and unseen; Ctrl-C stays what it is."""
    import termios
    import tty

    before = termios.tcgetattr(sys.stdin.fileno())
    try:
        tty.setcbreak(sys.stdin.fileno(), termios.TCSADRAIN)
        yield
    finally:
        termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, before)


def _key() -> str:
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


def _line(prompt: str) -> str:
    """Return a line that is typed, seen as it is."""
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
