"""Making the catalog of a dataset: propose, ask about unsure classes, write after every answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.files import clear_parts_of, locked, write_text
from wordnet_splits.base.tabular import Tabular
from wordnet_splits.datasets.catalog import CONFIDENCE, FIXED_COLUMNS, Catalog, CatalogClass, read_catalog
from wordnet_splits.datasets.catalog.table import SURE, UNSURE
from wordnet_splits.linking.asking import Ask, Question, Reply
from wordnet_splits.linking.classes import DatasetClasses, classes_below, listed_classes, read_names
from wordnet_splits.linking.proposals import Proposal, propose_synsets
from wordnet_splits.wordnet.lexicons import ENGLISH
from wordnet_splits.wordnet.taxonomy import Taxonomy, load
from wordnet_splits.wordnet.taxonomy.identifiers import read_ids

MADE = "made by wordnet-splits catalog make"
"""Start of the first line of a catalog that this module wrote; it overwrites no other file."""
EXPLAINED = ".explained.tsv"
BY_HAND = "by hand"

KINDS = {"synset": "exact", "exact": "exact", "variant": "variant", "qualified": "variant", "head": "head"}
"""Kind of candidate -> ``mapped``, for a first sense; other candidates are ``proposed``."""


@dataclass(frozen=True)
class Decision:
    """Mapping of a class in the catalog: wnids, how they were chosen, and why.

    ``confidence`` : confidence in the proposal, in [0, 1], kept when a person confirms it in the file; None
    for an answer on the terminal, and for a synset of the supplement to WordNet, which is a judgement.
    """

    wnids: tuple[str, ...]
    mapped: str
    why: str
    confidence: float | None = None


@dataclass(frozen=True)
class MadeCatalog(Tabular):
    """The catalog of a dataset as written: the proposal and the decision for each class.

    ``unsure`` are the ids of classes to ask about that have no answer, ``asked`` is the number of answers;
    ``shared`` maps each synset of several classes to their ids.
    """

    out: Path
    classes: DatasetClasses
    proposals: tuple[Proposal, ...]
    decisions: tuple[Decision, ...]
    asked: int
    unsure: tuple[str, ...]

    @property
    def shared(self) -> dict[str, list[str]]:
        """Synset -> ids of its classes, for synsets of several classes."""
        ids_of: dict[str, list[str]] = {}
        for item, row in zip(self.classes.classes, self.decisions, strict=True):
            for wnid in row.wnids:
                ids_of.setdefault(wnid, []).append(item.class_id)
        return {wnid: ids for wnid, ids in ids_of.items() if len(ids) > 1}

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
            for item, row, p in zip(self.classes.classes, self.decisions, self.proposals, strict=True)
        ]

    def as_dict(self) -> dict[str, Any]:
        """Return the object that ``--json`` prints."""
        return {
            "out": str(self.out),
            "rows": list(self.rows()),
            "asked": self.asked,
            "unsure": list(self.unsure),
            "mapped": dict(Counter(row.mapped or "none" for row in self.decisions)),
            "shared": self.shared,
            "notes": list(self.classes.notes),
        }


def make_catalog(
    classes: DatasetClasses | Path | Sequence[str],
    out: str | Path,
    *,
    ask: Ask | None = None,
    ask_below: float | None = None,
    taxonomy: Taxonomy | str | None = None,
    origin: str = "",
    language: str = ENGLISH,
    ids: Path | None = None,
) -> MadeCatalog:
    """Write the catalog of a dataset to ``out``, and an explanation of every row to a file next to it.

    Parameters
    ----------
    classes : class names, a file (one name per line), or a folder: with class folders, or a
        ``dataset.toml``.
    ask : function that asks a person about a class; without it unsure classes keep the best proposal and are
        marked unsure.
    ask_below : ask about classes below this confidence; by default, 97% of the remaining choices are right.
    taxonomy : WordNet 3.0 by default; a custom hierarchy, by the names of whose nodes the classes are linked.
    origin : where the classes come from, for the first line.
    language : the language of the names: the code of a lexicon in `wn`, such as ``fr``, or a WN-LMF file
        (``.xml``).
    ids : a table of wnids of names or identifiers (Wikidata's, BabelNet's), a tab between them.

    Raises
    ------
    DataError : ``out`` exists and is not such a catalog, a name is not allowed in a catalog, or identifiers
        have no known synset.
    TaxonomyError, MissingPackageError : the language cannot be read.
    SourceError : the folder is without classes.
    OutputError : ``out`` cannot be written.
    """
    dataset, out = _dataset_classes(classes), Path(out)
    if out.suffix != ".tsv":
        raise DataError("a catalog's file name must end in .tsv", where=str(out), hint=f"--out {out}.tsv")
    taxonomy = load(taxonomy)
    busy = "another `catalog make` is writing here"
    with locked(out, busy=busy):
        clear_parts_of(explained_file(out))
        answers = {
            class_id: row
            for class_id, row in earlier_answers(out, taxonomy).items()
            if all(wnid in taxonomy for wnid in row.wnids)
        }
        proposals = _proposals(dataset, taxonomy, ask_below, language, ids)
        dataset = _in_words(dataset, taxonomy)
        class_ids = [c.class_id for c in dataset.classes]
        decisions = [answers.get(i) or proposed(p) for i, p in zip(class_ids, proposals, strict=True)]
        to_ask = [n for n, p in enumerate(proposals) if p.asked and class_ids[n] not in answers]
        write_catalog(out, dataset, decisions, origin)
        unanswered = set(to_ask)
        for n, wnid in _answers(ask, to_ask, dataset, proposals, decisions, taxonomy) if ask else ():
            decisions[n] = by_hand(wnid, taxonomy)
            unanswered.discard(n)
            write_catalog(out, dataset, decisions, origin)
        write_explained(out, dataset, decisions, proposals, taxonomy)
    unsure = tuple(class_ids[n] for n in sorted(unanswered))
    return MadeCatalog(out, dataset, proposals, tuple(decisions), len(to_ask) - len(unsure), unsure)


def _dataset_classes(classes: DatasetClasses | Path | Sequence[str]) -> DatasetClasses:
    if isinstance(classes, DatasetClasses):
        return classes
    if isinstance(classes, Path):
        return classes_below(classes) if classes.is_dir() else read_names(classes)
    return listed_classes(classes)


def _proposals(
    dataset: DatasetClasses, taxonomy: Taxonomy, ask_below: float | None, language: str, ids: Path | None
) -> tuple[Proposal, ...]:
    names, superclasses = [c.name for c in dataset.classes], [c.superclass for c in dataset.classes]
    wnids = read_ids(ids, taxonomy) if ids else None
    proposals = propose_synsets(
        names, superclasses, taxonomy=taxonomy, language=language, ids=wnids
    ).proposals
    if ask_below is None:
        return proposals
    return tuple(replace(p, asked=p.confidence < ask_below) for p in proposals)


def _in_words(dataset: DatasetClasses, taxonomy: Taxonomy) -> DatasetClasses:
    """Return the classes, with the first word of the synset, if no other class has it, for a wnid as name."""
    if not taxonomy.is_wordnet:
        return dataset
    names = [c.name for c in dataset.classes]
    words = [taxonomy.lemmas(name)[0].replace("_", " ") if name in taxonomy else name for name in names]
    often = Counter(word.casefold() for word in words)
    named = zip(dataset.classes, words, strict=True)
    return replace(
        dataset, classes=tuple(replace(c, name=w) if often[w.casefold()] == 1 else c for c, w in named)
    )


def _answers(
    ask: Ask,
    to_ask: Sequence[int],
    dataset: DatasetClasses,
    proposals: Sequence[Proposal],
    decisions: Sequence[Decision],
    taxonomy: Taxonomy,
) -> Iterator[tuple[int, str]]:
    """Yield every answer with the number of its class; ``decisions`` may change in between."""
    at = 0
    while at < len(to_ask):
        n = to_ask[at]
        synsets = {
            item.class_id: row.wnids[0]
            for m, (item, row) in enumerate(zip(dataset.classes, decisions, strict=True))
            if row.wnids and m != n
        }
        reply = ask(Question(proposals[n], at + 1, len(to_ask), taxonomy, synsets))
        if reply is Reply.STOP:
            return
        if not isinstance(reply, Reply):
            yield n, reply
        at = max(at - 1, 0) if reply is Reply.BACK else at + 1


def proposed(proposal: Proposal) -> Decision:
    """Return the decision for a proposal without a person's answer."""
    if not proposal.candidates or proposal.confidence == 0:  # at 0 the name itself leads to no synset
        return Decision((), "", f"{UNSURE}: {proposal.reason}")
    best = proposal.candidates[0]
    doubt = f"{UNSURE}, " if proposal.asked or proposal.unsure else ""
    why = f"{doubt}{SURE}{proposal.confidence:.2f}: {proposal.reason}"
    english = not proposal.language and not best.added
    mapped = KINDS.get(best.kind) if best.sense == 1 and english and not doubt else None
    return Decision(
        (best.wnid,), mapped or "proposed", why, None if proposal.must_confirm else proposal.confidence
    )


def by_hand(wnid: str, taxonomy: Taxonomy) -> Decision:
    """Return the decision for a person's answer; ``""`` means no synset."""
    if not wnid:
        return Decision((), "", f"{BY_HAND}: no synset")
    return Decision((wnid,), "hand", f"{BY_HAND}: {taxonomy.first_definition(wnid) or taxonomy.name(wnid)}")


def earlier_answers(path: Path, taxonomy: Taxonomy) -> dict[str, Decision]:
    """Return the rows of an earlier catalog that a person decided, by class id; none without a file."""
    if not path.exists():
        return {}
    catalog = read_catalog(path, has_nodes=not taxonomy.is_wordnet)
    if not was_made(catalog):
        hint = "give another --out"
        raise DataError("is not a catalog written by `catalog make`", where=str(path), hint=hint)
    return {
        c.class_id: Decision(c.wnids, c.mapped, _reason_by_hand(c, taxonomy), c.confidence)
        for c in catalog
        if c.mapped in ("hand", "wider") or (not c.wnids and not c.why.startswith(UNSURE))
    }


def _reason_by_hand(row: CatalogClass, taxonomy: Taxonomy) -> str:
    """Return the reason of a row that a person decided; the linker's own reason is replaced."""
    if not row.why.startswith((UNSURE, SURE)) or any(wnid not in taxonomy for wnid in row.wnids):
        return row.why
    return "; ".join(by_hand(wnid, taxonomy).why for wnid in row.wnids or ("",))


def was_made(catalog: Catalog) -> bool:
    """Return whether this module wrote a catalog."""
    return bool(catalog.origin) and catalog.origin[0].startswith(MADE)


def write_catalog(path: Path, classes: DatasetClasses, decisions: Sequence[Decision], origin: str) -> None:
    """Write the catalog atomically, with the columns of the shipped catalogs. Raises OutputError."""
    lines = [f"# {MADE} {origin}"]
    count_columns = (f"count_{s}" for s in classes.splits)
    lines.append("\t".join((*FIXED_COLUMNS, CONFIDENCE, *count_columns, "count_group")))
    for index, (item, row) in enumerate(zip(classes.classes, decisions, strict=True)):
        counts = [str(item.counts[s]) if s in item.counts else "" for s in classes.splits]
        cells = (item.class_id, str(index), item.name, item.superclass, " ".join(row.wnids), row.mapped)
        confidence = ""
        if row.confidence is not None:  # rounded down, so that it stays below every threshold above it
            rounded = round(row.confidence, 4)
            confidence = f"{rounded if rounded <= row.confidence else rounded - 1e-4:.4f}"
        lines.append("\t".join((*cells, " ".join(row.why.split()), confidence, *counts, "")))
    write_text(path, "\n".join(lines) + "\n")


def explained_file(path: Path) -> Path:
    """Return the file that explains a catalog."""
    return path.with_name(path.stem + EXPLAINED)


def write_explained(
    path: Path,
    classes: DatasetClasses,
    decisions: Sequence[Decision],
    proposals: Sequence[Proposal],
    taxonomy: Taxonomy,
) -> None:
    """Write the decision, the runner-up and their glosses for every class, atomically. Raises OutputError."""
    columns = ("class_id", "name", "wnids", "mapped", "synset", "gloss", "confidence", "reason")
    lines = ["\t".join((*columns, "runner_up", "runner_up_synset", "runner_up_gloss"))]
    for item, row, proposal in zip(classes.classes, decisions, proposals, strict=True):
        runner_up = next((c.wnid for c in proposal.candidates if c.wnid not in row.wnids), "")
        synset, other_synset = (
            (taxonomy.name(wnid), taxonomy.definition(wnid)) if wnid else ("", "")
            for wnid in ((*row.wnids, "")[0], runner_up)
        )
        cells = [item.class_id, item.name, " ".join(row.wnids), row.mapped, *synset]
        cells += [f"{proposal.confidence:.3f}", proposal.reason, runner_up, *other_synset]
        lines.append("\t".join(" ".join(cell.split()) for cell in cells))
    write_text(explained_file(path), "\n".join(lines) + "\n")
