"""The tables of ``docs/audit.md`` and ``docs/audit.parquet``, computed from the lists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path

import pyarrow as pa

from tools.audits.reading import Listed
from wordnet_splits.audit.images import NONE
from wordnet_splits.audit.report import LEAKS, NAMESAKE, Audit, AuditedClass
from wordnet_splits.audit.thresholds import thresholds
from wordnet_splits.base.parquet import schema_of
from wordnet_splits.wordnet.taxonomy import load

WORST = 3
"""Leaking classes of each list in the table; the Parquet has all."""
NAMED = 12
"""Largest number of dropped classes that are listed by name."""
FARTHEST = 7
"""Number of edges from which on the last column of nearness counts."""
CLOSE = 4
"""Largest number of edges to a close namesake."""
NAMESAKES = 4
"""Namesakes of each list in the table, the closest."""
DIGITS = 6
SCHEMA = schema_of(
    "list origin licence against class_id name relation known known_name edges:int32 path kin:int32 gloss"
    " known_gloss nearest mean:double distance:int32 drop:bool by_definition:bool"
)

Row = tuple[str, ...]
Audited = Sequence[tuple[Listed, Audit]]


def tables(audits: Audited) -> Iterator[list[Row]]:
    """Yield the tables of the page in order."""
    standard = [(class_list, audit) for class_list, audit in audits if class_list.standard]
    others = [(class_list, audit) for class_list, audit in audits if not class_list.standard]
    yield [_counts(class_list, audit) for class_list, audit in standard]
    yield [_counts(class_list, audit) for class_list, audit in others]
    yield [_namesakes(class_list, audit) for class_list, audit in audits if audit.namesakes]
    yield [_nearness(class_list, audit) for class_list, audit in audits]
    yield [row for class_list, audit in audits for row in _worst(class_list, audit)]
    yield [_dropped(class_list, audit) for class_list, audit in audits if audit.leaking]
    yield [_kept(class_list, audit) for class_list, audit in audits if class_list.sample]
    yield [row for class_list, audit in audits if class_list.sample for row in _too_strict(class_list, audit)]
    large = thresholds()
    yield [_threshold(row) for row in large.counts(large.summary())]


def _counts(class_list: Listed, audit: Audit) -> Row:
    counts = audit.counts
    figures = [counts["classes"], *(counts[relation] for relation in LEAKS), counts["leaking"]]
    return (
        class_list.name,
        class_list.cite,
        class_list.licence,
        f"{audit.known:,}",
        *(f"{n:,}" for n in figures),
    )


def _namesakes(class_list: Listed, audit: Audit) -> Row:
    """Count the namesakes among classes that do not leak: all, by definition, close; name the closest."""
    some = sorted(audit.namesakes, key=lambda leak: (leak.edges, leak.id))
    taxonomy, counts = load(), audit.counts
    no_leak = counts["classes"] - counts["leaking"]
    near = [leak for leak in some if (leak.edges or 0) <= CLOSE]
    pairs = [" / ".join(taxonomy.name(wnid) for wnid in (leak.path[0], leak.path[-1])) for leak in some]
    shown = ", ".join(pairs[:NAMESAKES]) + (", ..." if len(pairs) > NAMESAKES else "")
    figures = (no_leak, counts["namesake"], counts["by_definition"], len(near))
    return (class_list.name, *(f"{n:,}" for n in figures), _text(shown) if class_list.whole else "")


def _nearness(class_list: Listed, audit: Audit) -> Row:
    by_edges = [sum(n for edges, n in audit.edges.items() if edges == at) for at in range(FARTHEST)]
    by_edges.append(sum(n for edges, n in audit.edges.items() if edges >= FARTHEST))
    mean = audit.nearness["mean"].values()
    return (class_list.name, *(f"{n:,}" for n in by_edges), *(f"{value:.2f}" for value in mean))


def worst_first(audit: Audit) -> list[AuditedClass]:
    """Return leaking classes: equal, then below by edges, then above, most known classes first."""

    def order(leak: AuditedClass) -> tuple[int, int]:
        above = leak.relation == "above"
        return LEAKS.index(str(leak.relation)), -leak.kin if above else leak.edges or 0

    return sorted(audit.leaking, key=order)


def _worst(class_list: Listed, audit: Audit) -> Iterator[Row]:
    taxonomy = load()
    for leak in islice(worst_first(audit), WORST):
        path = " > ".join(taxonomy.name(wnid) for wnid in leak.path)
        meanings = (_text(leak.gloss), _text(leak.other_gloss))
        yield (class_list.name, str(leak.relation), _text(path), f"{leak.kin:,}", *meanings)


def _text(words: str) -> str:
    return words.replace("|", "/")


def _dropped(class_list: Listed, audit: Audit) -> Row:
    if len(audit.drops) > NAMED:
        return (class_list.name, f"{len(audit.drops):,} of {audit.counts['classes']:,}")
    return (class_list.name, _text(", ".join(f"{leak.name} ({leak.id})" for leak in audit.leaking)))


def _kept(class_list: Listed, audit: Audit) -> Row:
    """Return the pictures kept in the list's sample by relation, and the leaking shares of both."""
    assert audit.images is not None
    (sample,) = (sample for sample in audit.images.samples if sample.name == class_list.sample)
    counts = sample.by_relation
    cells = [f"{counts.get(relation, 0):,}" for relation in (NONE, *LEAKS, NAMESAKE)]
    leaking = sum(counts.get(relation, 0) for relation in LEAKS)
    shares = [leaking / sum(counts.values()), audit.counts["leaking"] / audit.counts["classes"]]
    return (class_list.name, class_list.sample, *cells, *(f"{share:.1%}" for share in shares))


def _threshold(row: Mapping[str, float]) -> Row:
    return (f"{row['threshold']:.2f}", *(f"{row[name]:,}" for name in ("near", "far", "below", "above")))


def _too_strict(class_list: Listed, audit: Audit) -> Iterator[Row]:
    """Yield classes below a known class with pictures kept as showing no known class."""
    assert audit.images is not None
    kept_images = {row.id: row.kept for row in audit.images.classes}
    taxonomy = load()
    for leak in audit.leaking:
        if leak.relation == "below" and kept_images[leak.id]:
            yield (
                class_list.name,
                " > ".join(taxonomy.name(wnid) for wnid in leak.path),
                f"{kept_images[leak.id]:,}",
            )


def as_table(audits: Audited, facts: Path) -> pa.Table:
    """Return a row per class; only the leaking classes of lists that must not be copied."""
    rows = [
        {
            "list": class_list.name,
            "origin": class_list.origin(facts),
            "licence": class_list.licence,
            "against": "its own" if class_list.known is not None else class_list.against,
            "class_id": leak.id,
            "known": leak.other,
            "known_name": leak.other_name,
            "known_gloss": leak.other_gloss,
            **{key: value for key, value in asdict(leak).items() if key in SCHEMA.names},
            "path": " ".join(leak.path),
            "mean": None if leak.mean is None else round(leak.mean, DIGITS),
            "drop": leak.relation in LEAKS,
        }
        for class_list, audit in audits
        for leak in (audit.classes if class_list.whole else audit.leaking)
    ]
    return pa.Table.from_pylist(rows, SCHEMA)


def filled(page: str, tables: Iterable[Sequence[Row]]) -> str:
    """Return the page with the rows of its tables replaced, in order."""
    remaining, lines, inside = iter(tables), [], False
    for line in page.splitlines():
        if inside and line.startswith("|"):
            continue
        inside = line.startswith("|---")
        lines.append(line)
        if inside:
            lines += ["| " + " | ".join(row) + " |" for row in next(remaining)]
    left = list(remaining)
    assert not left, f"the page lacks {len(left)} tables"
    return "\n".join(lines) + "\n"
