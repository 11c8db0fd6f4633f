"""``docs/peers.md``: how many statements of each peer's tests hold, and every one that does not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from tools.peers.running import Peer
from tools.peers.statements import AGREES, DIFFERS, OUTSIDE, Record

HEAD = """# The tests of other projects, run on our functions

Made by `make peers`. The tests of projects that compute what we compute are run with our functions in the
place of theirs, statement by statement. A statement counts once its test has called a function of ours.
*Agrees*: it holds. *Outside*: it asks for something that we do not compute. *Differs*: it does not hold, for
the reason given below. A difference without a reason, or a reason without a difference, fails the command.

"""


@dataclass(frozen=True)
class Difference:
    """Why statements of a peer's test do not hold; ``test`` is a pattern, ``source`` a part of the text."""

    peer: str
    test: str
    reason: str
    source: str = ""

    def explains(self, peer: str, record: Record) -> bool:
        """Return whether the record is one of these."""
        return self.peer == peer and fnmatchcase(record.test, self.test) and self.source in record.source


@dataclass(frozen=True)
class Outcome:
    """A peer, the version whose tests were run, and how each statement ended."""

    peer: Peer
    version: str
    records: Sequence[Record]


def unexplained(outcomes: Sequence[Outcome], differences: Sequence[Difference]) -> list[str]:
    """Return a line for each difference without a reason and for each reason without a difference."""
    differing = [(o.peer.name, record) for o in outcomes for record in o.records if record.outcome == DIFFERS]
    lines = [
        f"{name}: {record.test}, line {record.line}: {record.source!r} {record.detail}"
        for name, record in differing
        if not any(difference.explains(name, record) for difference in differences)
    ]
    tried = {outcome.peer.name for outcome in outcomes}
    lines += [
        f"{difference.peer}: {difference.test}: no statement differs any more ({difference.reason})"
        for difference in differences
        if difference.peer in tried and not any(difference.explains(*pair) for pair in differing)
    ]
    return lines


def as_page(outcomes: Sequence[Outcome], differences: Sequence[Difference], absent: Mapping[str, str]) -> str:
    """Return the page; ``absent`` says why peers that were not run were not."""
    lines = [
        "| peer | version | tests | agrees | differs | outside |",
        "|---|---|---|---:|---:|---:|",
    ]
    for outcome in outcomes:
        counts = Counter(record.outcome for record in outcome.records)
        tests = ", ".join(f"`{path.rpartition('/')[2]}`" for path in outcome.peer.tests)
        cells = " | ".join(str(counts[name]) for name in (AGREES, DIFFERS, OUTSIDE))
        lines.append(f"| {outcome.peer.name} | {outcome.version} | {tests} | {cells} |")
    text = HEAD + "\n".join(lines) + "\n"
    for name, reason in absent.items():
        text += f"\nNot run: {name} ({reason}).\n"
    return text + _differences(outcomes, differences) + _outside(outcomes)


def _differences(outcomes: Sequence[Outcome], differences: Sequence[Difference]) -> str:
    lines = ["", "## Differences", "", "| peer | test | statements | why |", "|---|---|---:|---|"]
    for outcome in outcomes:
        name = outcome.peer.name
        for difference in differences:
            number = sum(difference.explains(name, r) for r in outcome.records if r.outcome == DIFFERS)
            if number:
                lines.append(f"| {name} | `{difference.test}` | {number} | {difference.reason} |")
    return "\n".join(lines) + "\n"


def _outside(outcomes: Sequence[Outcome]) -> str:
    lines = ["", "## Outside of what we compute", "", "| peer | asks for |", "|---|---|"]
    for outcome in outcomes:
        reasons = Counter(record.detail for record in outcome.records if record.outcome == OUTSIDE)
        words = ", ".join(f"`{reason}` ({number})" for reason, number in reasons.most_common())
        lines.append(f"| {outcome.peer.name} | {words or 'nothing'} |")
    return "\n".join(lines) + "\n"
