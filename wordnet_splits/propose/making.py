"""Make the catalog of a dataset: propose, ask what is unsure, write after every answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.files import clear_parts_of, locked
from wordnet_splits.base.tabular import Tabular
from wordnet_splits.propose.class_folders import classes_below
from wordnet_splits.propose.classes import FoundClasses, listed_classes, read_names
from wordnet_splits.propose.proposals import Proposal, propose_synsets
from wordnet_splits.propose.writing import (
    Decision,
    by_hand,
    earlier_answers,
    explained_file,
    proposed,
    write_catalog,
    write_explained,
)
from wordnet_splits.taxonomy import Taxonomy, load


class Reply(Enum):
    """What a person may say instead of a synset."""

    LATER = "later"
    BACK = "back"
    STOP = "stop"


@dataclass(frozen=True)
class Question:
    """A class to be asked about: which of how many, and the synsets chosen for the other classes."""

    proposal: Proposal
    number: int
    of: int
    taxonomy: Taxonomy
    chosen: Mapping[str, str]


Ask = Callable[[Question], "str | Reply"]
"""Returns a wnid, ``""`` for no synset, or a `Reply`."""


@dataclass(frozen=True)
class MadeCatalog(Tabular):
    """A catalog that was made: per class what was proposed and what stands in it.

    ``unsure`` are the class ids that were to be asked about and have no answer; ``shared`` maps each synset
    of several classes to their ids.
    """

    out: Path
    found: FoundClasses
    proposals: tuple[Proposal, ...]
    decisions: tuple[Decision, ...]
    asked: int
    unsure: tuple[str, ...]

    @property
    def shared(self) -> dict[str, list[str]]:
        """Synset -> the classes that have it, where there are several."""
        classes: dict[str, list[str]] = {}
        for item, row in zip(self.found.classes, self.decisions, strict=True):
            for wnid in row.wnids:
                classes.setdefault(wnid, []).append(item.class_id)
        return {wnid: ids for wnid, ids in classes.items() if len(ids) > 1}

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return class_id, name, wnid, mapped, confidence, reason and runner_up of each class."""
        return [
            {
                "class_id": item.class_id,
                "name": item.name,
                "wnid": " ".join(row.wnids),
                "mapped": row.mapped,
                "confidence": round(p.confidence, 4),
                "reason": p.reason,
                "runner_up": next((c.wnid for c in p.candidates if c.wnid not in row.wnids), ""),
            }
            for item, row, p in zip(self.found.classes, self.decisions, self.proposals, strict=True)
        ]

    def as_dict(self) -> dict[str, Any]:
        """Return what ``--json`` prints."""
        kinds = Counter(row.mapped or "none" for row in self.decisions)
        return {
            "out": str(self.out),
            "rows": list(self.rows()),
            "asked": self.asked,
            "unsure": list(self.unsure),
            "mapped": dict(kinds),
            "shared": self.shared,
            "notes": list(self.found.notes),
        }


def make_catalog(
    classes: FoundClasses | Path | Sequence[str],
    out: str | Path,
    *,
    ask: Ask | None = None,
    ask_below: float | None = None,
    taxonomy: Taxonomy | None = None,
    origin: str = "",
) -> MadeCatalog:
    """Write the catalog of a dataset to ``out``, and what explains it beside it.

    Parameters
    ----------
    classes : class names, a file of them (a line each), or a folder: with class folders, or a
        ``dataset.toml``.
    ask : asks a person about a class; without it unsure classes keep the best proposal, marked so.
    ask_below : confidence below which a class is asked about; by default so that 97% of the others are right.
    origin : where the classes were read, for the first line.

    Raises
    ------
    DataError : ``out`` is no file of ours, or the names cannot stand in a catalog.
    SourceError : the folder holds no classes. OutputError : ``out`` cannot be written.
    """
    found, out = _found(classes), Path(out)
    if out.suffix != ".tsv":
        raise DataError("a catalog's name ends in .tsv", where=str(out), hint=f"--out {out}.tsv")
    taxonomy = taxonomy or load()
    busy = "another `catalog make` is writing here"
    with locked(out, busy=busy):
        clear_parts_of(explained_file(out))
        answers = {
            class_id: row
            for class_id, row in earlier_answers(out).items()
            if all(wnid in taxonomy for wnid in row.wnids)
        }
        proposals = _proposals(found, taxonomy, ask_below)
        ids = [c.class_id for c in found.classes]
        decisions = [answers.get(i) or proposed(p) for i, p in zip(ids, proposals, strict=True)]
        to_ask = [n for n, p in enumerate(proposals) if p.asked and ids[n] not in answers]
        write_catalog(out, found, decisions, origin)
        left = set(to_ask)

        for n, wnid in _answers(ask, to_ask, found, proposals, decisions, taxonomy) if ask else ():
            decisions[n] = by_hand(wnid, taxonomy)
            left.discard(n)
            write_catalog(out, found, decisions, origin)
        write_explained(out, found, decisions, proposals, taxonomy)
    unsure = tuple(ids[n] for n in sorted(left))
    return MadeCatalog(out, found, proposals, tuple(decisions), len(to_ask) - len(left), unsure)


def _found(classes: FoundClasses | Path | Sequence[str]) -> FoundClasses:
    if isinstance(classes, FoundClasses):
        return classes
    if isinstance(classes, Path):
        return classes_below(classes) if classes.is_dir() else read_names(classes)
    return listed_classes(classes)


def _proposals(found: FoundClasses, taxonomy: Taxonomy, ask_below: float | None) -> tuple[Proposal, ...]:
    names = [c.name for c in found.classes]
    made = propose_synsets(names, [c.superclass for c in found.classes], taxonomy=taxonomy).proposals
    if ask_below is None:
        return made
    return tuple(replace(p, asked=p.confidence < ask_below) for p in made)


def _answers(
    ask: Ask,
    to_ask: Sequence[int],
    found: FoundClasses,
    proposals: Sequence[Proposal],
    decisions: Sequence[Decision],
    taxonomy: Taxonomy,
) -> Iterator[tuple[int, str]]:
    """Yield the answers as they come, each with the class it is for; ``decisions`` may change meanwhile."""
    at = 0
    while at < len(to_ask):
        n = to_ask[at]
        chosen = {
            item.class_id: row.wnids[0]
            for m, (item, row) in enumerate(zip(found.classes, decisions, strict=True))
            if row.wnids and m != n
        }
        reply = ask(Question(proposals[n], at + 1, len(to_ask), taxonomy, chosen))
        if reply is Reply.STOP:
            return
        if not isinstance(reply, Reply):
            yield n, reply
        at = max(at - 1, 0) if reply is Reply.BACK else at + 1
