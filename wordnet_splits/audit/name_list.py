"""Audit a list of class names, as prompts of a vision-language model, against the synsets of the classes.

Published lists hold one name for each class, in label order. Two classes with one name have one prompt, and
one of them can never win (CLIP's names of ImageNet have *missile* and *sunglasses* twice; the first words of
its synsets *crane* and *maillot*).
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from wordnet_splits.audit.report_base import AuditReport, Page, first_rows, shares
from wordnet_splits.base.errors import DataError
from wordnet_splits.base.parquet import schema_of
from wordnet_splits.benchmark.hierarchies import taxonomy_of
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.datasets.word_lists import Word, read_names
from wordnet_splits.wordnet.lexicons import ENGLISH
from wordnet_splits.wordnet.prompt_names import (
    LATER,
    RARE,
    folded,
    is_other,
    misleading,
    name_options,
    names_of_classes,
    nouns_of,
    prompt_names,
)

MEANINGS = {
    "mix_up": "the name of another class only: is the list in label order?",
    "collision": "the name of another line, too: both classes have one prompt",
    "shared": "a name of this and of another class",
    "other_word": "a noun, but of none of the class's synsets",
    RARE: "a photo of it may show another thing: a sense as frequent in tagged texts",
    LATER: "the hierarchy lists another sense first; no problem",
}
"""Problems of a name, the worst first; the last is only a note."""
LIMITS = (
    "Names are compared with those of the hierarchy, without case and hyphens. An",
    "encoder may know words that it lacks, and may read a word in another sense.",
)
"""Caveats, as lines for a terminal."""
SCHEMA = schema_of("label:int32 class_id name class_name line:int32 problems other other_name proposal")
_ASIDE = re.compile(r"(.+?)\s*\((.+)\)")


@dataclass(frozen=True)
class AuditedName:
    """A name of a class, and its problems, as of `MEANINGS`.

    Attributes
    ----------
    label, class_id, class_name : the class in the benchmark.
    line : position in the list, from 1.
    other, other_name : a class with the same name, if any.
    proposal : another name by the rule of `wordnet_splits.wordnet.prompt_names`; ``""`` without a problem.
    """

    label: int
    class_id: str
    name: str
    class_name: str
    line: int
    problems: tuple[str, ...]
    other: str | None
    other_name: str | None
    proposal: str


@dataclass(frozen=True)
class NamesAudit(AuditReport):
    """Every name of a list compared with the ID classes of a benchmark."""

    schema: ClassVar = SCHEMA
    sizes: ClassVar = "{:,} names, {:,} ID classes"
    limits: ClassVar = LIMITS

    names: tuple[AuditedName, ...]

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of ``names``, and of those with each of `MEANINGS`."""
        found = Counter(problem for item in self.names for problem in item.problems)
        return {"names": len(self.names), **{problem: found[problem] for problem in MEANINGS}}

    @property
    def with_problems(self) -> list[AuditedName]:
        """Names with a problem, the worst first."""
        named = [item for item in self.names if item.problems not in ((), (LATER,))]
        return sorted(named, key=lambda item: list(MEANINGS).index(item.problems[0]))

    @property
    def ok(self) -> bool:
        """Whether no name has a problem."""
        return not self.with_problems

    def rows(self) -> list[dict[str, Any]]:
        """Return a row per name."""
        return [{**vars(item), "problems": " ".join(item.problems)} for item in self.names]

    def page(self) -> Page:
        """Return the names with a problem or a note."""
        return Page(SCHEMA.names, [list(row.values()) for row in self.rows() if row["problems"]])

    def as_dict(self) -> dict[str, Any]:
        """Return what ``audit names --json`` prints."""
        return {**super().as_dict(), "counts": self.counts, "names": [asdict(item) for item in self.names]}

    def summary(self) -> list[tuple[str, str]]:
        """Return the figures as names and texts."""
        return shares(MEANINGS, self.counts, len(self.names))

    def tables(self, width: int | None, most: int | None) -> Iterator[list[str]]:
        """Yield a table of the names with problems."""
        cells = [
            (str(item.line), item.name, " ".join(item.problems), item.other_name or "", item.proposal)
            for item in self.with_problems
        ]
        columns = ("line", "name", "problems", "other class", "proposal")
        yield first_rows(columns, cells, width, most, "line")


def audit_names(
    names: Mapping[str, str] | str | Path | Iterable[str] | None,
    benchmark: Manifest | str,
    *,
    column: str | None = None,
    language: str = ENGLISH,
    manifests: Path | None = None,
) -> NamesAudit:
    """Compare the names of a list with the synsets of a benchmark's ID classes.

    Parameters
    ----------
    names : a file with a name a line in label order, a table with columns ``class_id`` and ``name``, the
        names themselves, or class id -> name; None for the names that `loaders.harness.zero_shot` gives.
    benchmark : a manifest, its name, a path or an address on the Hub.
    column : the column of the names.
    language : of the names, see `wordnet_splits.wordnet.lexicons.read_nouns`.
    manifests : folder of manifests, else the usual ones.

    Raises
    ------
    UnknownNameError : no such benchmark, or a class that it lacks.
    DataError : no ID classes, names for too few or too many of them, or sentences with a template.

    Examples
    --------
    >>> audit = audit_names({"n02012849": "crane", "n03773504": "missile"}, "openood-imagenet1k")
    >>> [(item.problems, item.proposal) for item in audit.names]
    [(('shared', 'rare_sense'), 'crane (wading bird)'), (('shared',), 'missile (rocket)')]
    """
    manifest = load_manifest(benchmark, manifests, check="classes")
    nouns = nouns_of(language, taxonomy_of(manifest))
    id_classes = manifest.id_classes()
    if not id_classes:
        raise DataError("has no ID classes with labels", where=manifest.name)
    class_ids = [class_id for class_id, _, _ in id_classes]
    classes = [(name, wnids) for _, name, wnids in id_classes]
    by_rule = prompt_names(classes, nouns)
    found = {class_id: name for class_id, name in zip(class_ids, by_rule, strict=True) if name}
    words = read_names(found if names is None else names, class_ids, column)
    if not words:
        raise DataError(f"no class has a name in {language}", where=manifest.name, hint="give a list")
    known = names_of_classes(classes, nouns)
    times = Counter(folded(word.text) for word in words.values())

    def audited(label: int, class_id: str, word: Word) -> AuditedName:
        class_name, wnids = classes[label]
        aside = _ASIDE.fullmatch(word.text)
        parts = re.split(r"\s*[,/]\s*", aside[1] if aside else word.text)
        key, keys = folded(word.text), [] if aside else [*map(folded, parts)]
        alike = [n for name in dict.fromkeys([key, *keys]) for n in known.get(name, ())]
        others = [n for n in alike if is_other(classes[n], classes[label])]
        senses = nouns.senses(parts[0])
        own = label in alike or not senses.keys().isdisjoint(wnids)
        sense = "" if aside else misleading(parts[0], wnids, nouns)
        found = {
            "mix_up": others and not own,
            "collision": times[key] > 1,
            "shared": others and own,
            "other_word": senses and wnids and not own and not others,
            RARE: sense == RARE,
            LATER: sense == LATER,
        }
        problems = tuple(problem for problem in MEANINGS if found[problem])
        other, other_name = (class_ids[others[0]], classes[others[0]][0]) if others else (None, None)
        options = (
            itertools.chain([by_rule[label]], name_options(class_name, wnids, nouns)) if problems else ()
        )
        better = (o for o in options if folded(o) != key and misleading(o, wnids, nouns) != RARE)
        rest = (problems, other, other_name, next(better, ""))
        return AuditedName(label, class_id, word.text, class_name, word.line, *rest)

    found_names = tuple(audited(n, i, words[i]) for n, i in enumerate(class_ids) if i in words)
    listed = Path(names).name if isinstance(names, str | Path) else "list" if names else "names by rule"
    return NamesAudit(listed, manifest.name, len(classes), found_names)
