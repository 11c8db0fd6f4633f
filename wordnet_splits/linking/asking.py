"""Questions to a person about the synsets of classes, on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import Final

from rich.console import Console
from rich.text import Text

from wordnet_splits.base.errors import TaxonomyError
from wordnet_splits.base.names import printable
from wordnet_splits.base.terminal.output import to_stderr
from wordnet_splits.linking.proposals import Proposal
from wordnet_splits.wordnet.taxonomy import Taxonomy

PROMPT: Final = "number (Enter: 1), another noun, n: no synset, s: later, b: back, q: stop> "
SHOWN_BELOW: Final = 6


class Reply(Enum):
    """Replies of a person other than a synset."""

    LATER = "later"
    BACK = "back"
    STOP = "stop"


REPLIES: Final = {"s": Reply.LATER, "b": Reply.BACK, "q": Reply.STOP}


@dataclass(frozen=True)
class Question:
    """A class to ask about, number ``number`` of ``total``; ``synsets`` : synsets of the other classes."""

    proposal: Proposal
    number: int
    total: int
    taxonomy: Taxonomy
    synsets: Mapping[str, str]


Ask = Callable[[Question], "str | Reply"]
"""Function that returns a wnid, ``""`` for no synset, or a `Reply`."""


def is_interactive() -> bool:
    """Return whether stdin and stderr are terminals, so that questions can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def ask_on_terminal(question: Question) -> str | Reply:
    """Ask about one class on the terminal, until there is an answer."""
    wnids = [c.wnid for c in question.proposal.candidates]
    console = Console(stderr=True)
    while True:
        for line in _question_lines(question, wnids):
            to_stderr(line)
        try:
            answer = console.input(Text(PROMPT)).strip()
        except EOFError:
            return Reply.STOP
        if answer in REPLIES:
            return REPLIES[answer]
        if answer == "n":
            return ""
        number = answer or "1"
        if number.isdecimal():
            if 0 < int(number) <= len(wnids):
                return wnids[int(number) - 1]
        elif senses := _senses(answer.removeprefix("/"), question.taxonomy):
            wnids = senses
        else:
            to_stderr(f"{printable(answer)!r} is not a noun of {question.taxonomy.title}")


def _senses(word: str, taxonomy: Taxonomy) -> list[str]:
    """Return the wnids of a wnid, a synset name or a noun; none for any other word."""
    text = "_".join(word.split())
    if senses := taxonomy.senses(text) if text else ():
        return list(senses)
    with suppress(TaxonomyError):
        return [taxonomy.find(text)]
    return []


def _question_lines(question: Question, wnids: list[str]) -> Iterator[str]:
    proposal, taxonomy = question.proposal, question.taxonomy
    superclass = f" ({proposal.superclass})" if proposal.superclass else ""
    yield ""
    yield f"[{question.number} of {question.total}] {proposal.name}{superclass}: {proposal.reason}"
    shares = {c.wnid: c.share for c in proposal.candidates}
    for n, wnid in enumerate(wnids, 1):
        share = f"{100 * shares[wnid]:3.0f}%" if wnid in shares else "    "
        yield f"{n:3} {share} {taxonomy.name(wnid)}: {taxonomy.first_definition(wnid)}"
        yield from (f"         below it: {text}" for text in _lines_below(question, wnid))


def _lines_below(question: Question, wnid: str) -> Iterator[str]:
    taxonomy = question.taxonomy
    children = [taxonomy.lemmas(w)[0].replace("_", " ") for w in taxonomy.children(wnid)]
    yield _first_names(children) if children else "nothing"
    descendants = taxonomy.descendants(wnid)
    if classes := [name for name, answer in question.synsets.items() if answer in descendants]:
        yield f"your classes {_first_names(classes)}"


def _first_names(names: list[str]) -> str:
    rest = f" and {len(names) - SHOWN_BELOW} more" if len(names) > SHOWN_BELOW else ""
    return ", ".join(names[:SHOWN_BELOW]) + rest
