"""A catalog as a file: the table that a source reads, and beside it what explains every row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.files import write_text
from wordnet_splits.catalog import CONFIDENCE, FIXED_COLUMNS, read_catalog
from wordnet_splits.propose.classes import FoundClasses
from wordnet_splits.propose.proposals import Proposal
from wordnet_splits.taxonomy import Taxonomy

MADE = "made by wordnet-splits catalog make"
"""First line of a catalog of ours; another file is not written over."""
EXPLAINED = ".explained.tsv"
BY_HAND = "by hand"
UNSURE = "unsure"

KINDS = {"synset": "exact", "exact": "exact", "variant": "variant", "qualified": "variant", "head": "head"}
"""Kind of candidate -> ``mapped``, where the first sense is meant; anything else is ``proposed``."""


@dataclass(frozen=True)
class Decision:
    """What stands in a row: wnids, how they were found, and why.

    ``confidence`` is that of a proposal, in [0, 1], also where a person confirmed it in the file; None for an
    answer on the terminal, and for a synset of our supplement to WordNet, which is a judgement however likely
    it is.
    """

    wnids: tuple[str, ...]
    mapped: str
    why: str
    confidence: float | None = None


def proposed(proposal: Proposal) -> Decision:
    """Return what is written of a proposal that nobody was asked about, or has not answered yet."""
    if not proposal.candidates or proposal.confidence == 0:  # at 0 the name itself leads to no synset
        return Decision((), "", f"{UNSURE}: {proposal.reason}")
    first = proposal.candidates[0]
    doubt = f"{UNSURE}, " if proposal.asked or proposal.unsure else ""
    why = f"{doubt}confidence {proposal.confidence:.2f}: {proposal.reason}"
    named = first.sense == 1 and not first.added
    mapped = KINDS.get(first.kind) if named and not doubt else None
    return Decision((first.wnid,), mapped or "proposed", why, None if first.added else proposal.confidence)


def by_hand(wnid: str, taxonomy: Taxonomy) -> Decision:
    """Return what is written of a person's answer; ``""`` stands for no synset."""
    if not wnid:
        return Decision((), "", f"{BY_HAND}: no synset")
    return Decision((wnid,), "hand", f"{BY_HAND}: {taxonomy.first_definition(wnid) or taxonomy.name(wnid)}")


def earlier_answers(path: Path) -> dict[str, Decision]:
    """Return the rows of a catalog of ours that a person decided, by class id; none where there is no file.

    Raises
    ------
    DataError : the file is somebody else's, or malformed.
    """
    if not path.exists():
        return {}
    catalog = read_catalog(path)
    if not catalog.origin or not catalog.origin[0].startswith(MADE):
        hint = "give another --out"
        raise DataError("is not a catalog that this command made, and stays", where=str(path), hint=hint)
    return {
        c.class_id: Decision(c.wnids, c.mapped, c.why, c.confidence)
        for c in catalog
        if c.mapped in ("hand", "wider") or (not c.wnids and not c.why.startswith(UNSURE))
    }


def write_catalog(path: Path, found: FoundClasses, decisions: Sequence[Decision], origin: str) -> None:
    """Write the catalog in one step; the columns are those of the shipped ones. Raises OutputError."""
    lines = [f"# {MADE} {origin}"]
    counted = (f"count_{s}" for s in found.splits)
    lines.append("\t".join((*FIXED_COLUMNS, CONFIDENCE, *counted, "count_group")))
    for index, (item, row) in enumerate(zip(found.classes, decisions, strict=True)):
        counts = [str(item.counts[s]) if s in item.counts else "" for s in found.splits]
        cells = (item.class_id, str(index), item.name, item.superclass, " ".join(row.wnids), row.mapped)
        confidence = "" if row.confidence is None else f"{_rounded_down(row.confidence):.4f}"
        lines.append("\t".join((*cells, " ".join(row.why.split()), confidence, *counts, "")))
    write_text(path, "\n".join(lines) + "\n")


def _rounded_down(confidence: float) -> float:
    """Return four digits that are below any threshold that the confidence is below; four digits stay."""
    rounded = round(confidence, 4)
    return rounded if rounded <= confidence else rounded - 1e-4


def explained_file(path: Path) -> Path:
    """Return the file that explains a catalog."""
    return path.with_name(path.stem + EXPLAINED)


def write_explained(
    path: Path,
    found: FoundClasses,
    decisions: Sequence[Decision],
    proposals: Sequence[Proposal],
    taxonomy: Taxonomy,
) -> None:
    """Write, per class, what was chosen and proposed, with the glosses, in one step. Raises OutputError."""
    columns = ("class_id", "name", "wnids", "mapped", "synset", "gloss", "confidence", "reason")
    lines = ["\t".join((*columns, "runner_up", "runner_up_synset", "runner_up_gloss"))]
    for item, row, proposal in zip(found.classes, decisions, proposals, strict=True):
        first = row.wnids[0] if row.wnids else ""
        second = next((c.wnid for c in proposal.candidates if c.wnid not in row.wnids), "")
        told = [
            text
            for w in (first, second)
            for text in ((taxonomy.name(w), taxonomy.definition(w)) if w else ("", ""))
        ]
        cells = [item.class_id, item.name, " ".join(row.wnids), row.mapped, *told[:2]]
        cells += [f"{proposal.confidence:.3f}", proposal.reason, second, *told[2:]]
        lines.append("\t".join(" ".join(cell.split()) for cell in cells))
    write_text(explained_file(path), "\n".join(lines) + "\n")
