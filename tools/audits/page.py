"""The tables of ``docs/audit.md`` and ``docs/audit.parquet``, computed from the lists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path

import pyarrow as pa

from tools.audits.reading import Listed
from wordnet_splits.audit.audit import LEAKS, NAMESAKE, Audit, AuditedClass
from wordnet_splits.audit.images import NONE
from wordnet_splits.audit.thresholds import thresholds
from wordnet_splits.base.parquet import schema_of
from wordnet_splits.taxonomy import load

WORST = 3
"""Classes shown of each list; all are in the Parquet."""
NAMED = 12
"""Classes that a clean version drops, named where there are no more."""
FARTHEST = 7
"""Edges in the last column of nearness: as many or more."""
CLOSE = 4
"""Edges that a namesake is close by, at most."""
NAMESAKES = 4
"""Namesakes shown of each list, the closest."""
DIGITS = 6
SCHEMA = schema_of(
    "list origin licence against class_id name relation known known_name edges:int32 path kin:int32 gloss"
    " known_gloss nearest mean:double distance:int32 drop:bool by_definition:bool"
)

Row = tuple[str, ...]
Audited = Sequence[tuple[Listed, Audit]]


def tables(found: Audited) -> Iterator[list[Row]]:
    """Yield the tables of the page in order."""
    standard = [(one, audit) for one, audit in found if one.standard]
    others = [(one, audit) for one, audit in found if not one.standard]
    yield [_counts(one, audit) for one, audit in standard]
    yield [_counts(one, audit) for one, audit in others]
    yield [_namesakes(one, audit) for one, audit in found if audit.namesakes]
    yield [_nearness(one, audit) for one, audit in found]
    yield [row for one, audit in found for row in _worst(one, audit)]
    yield [_dropped(one, audit) for one, audit in found if audit.leaking]
    yield [_kept(one, audit) for one, audit in found if one.sample]
    yield [row for one, audit in found if one.sample for row in _too_strict(one, audit)]
    large = thresholds()
    yield [_threshold(row) for row in large.counts(large.summary())]


def _counts(one: Listed, audit: Audit) -> Row:
    counts = audit.counts
    figures = [counts["classes"], *(counts[relation] for relation in LEAKS), counts["leaking"]]
    return (one.name, one.cite, one.licence, f"{audit.known:,}", *(f"{n:,}" for n in figures))


def _namesakes(one: Listed, audit: Audit) -> Row:
    """Of what does not leak: how many are namesakes, by definition, and close; the closest by name."""
    some = sorted(audit.namesakes, key=lambda leak: (leak.edges, leak.id))
    taxonomy, counts = load(), audit.counts
    no_leak = counts["classes"] - counts["leaking"]
    near = [leak for leak in some if (leak.edges or 0) <= CLOSE]
    named = [" / ".join(taxonomy.name(wnid) for wnid in (leak.path[0], leak.path[-1])) for leak in some]
    shown = ", ".join(named[:NAMESAKES]) + (", ..." if len(named) > NAMESAKES else "")
    figures = (no_leak, counts["namesake"], counts["by_definition"], len(near))
    return (one.name, *(f"{n:,}" for n in figures), _text(shown) if one.whole else "")


def _nearness(one: Listed, audit: Audit) -> Row:
    by_edges = [sum(n for edges, n in audit.edges.items() if edges == at) for at in range(FARTHEST)]
    by_edges.append(sum(n for edges, n in audit.edges.items() if edges >= FARTHEST))
    mean = audit.nearness["mean"].values()
    return (one.name, *(f"{n:,}" for n in by_edges), *(f"{value:.2f}" for value in mean))


def worst_first(audit: Audit) -> list[AuditedClass]:
    """Return equal ones, those below by edges, then those above, most known classes first."""

    def order(one: AuditedClass) -> tuple[int, int]:
        above = one.relation == "above"
        return LEAKS.index(str(one.relation)), -one.kin if above else one.edges or 0

    return sorted(audit.leaking, key=order)


def _worst(one: Listed, audit: Audit) -> Iterator[Row]:
    taxonomy = load()
    for leak in islice(worst_first(audit), WORST):
        path = " > ".join(taxonomy.name(wnid) for wnid in leak.path)
        meanings = (_text(leak.gloss), _text(leak.other_gloss))
        yield (one.name, str(leak.relation), _text(path), f"{leak.kin:,}", *meanings)


def _text(words: str) -> str:
    return words.replace("|", "/")


def _dropped(one: Listed, audit: Audit) -> Row:
    if len(audit.drops) > NAMED:
        return (one.name, f"{len(audit.drops):,} of {audit.counts['classes']:,}")
    return (one.name, _text(", ".join(f"{leak.name} ({leak.id})" for leak in audit.leaking)))


def _kept(one: Listed, audit: Audit) -> Row:
    """Of the pictures of the list's own sample that were kept, the share by relation, beside the classes'."""
    assert audit.images is not None
    (sample,) = (sample for sample in audit.images.samples if sample.name == one.sample)
    counts = sample.by_relation
    cells = [f"{counts.get(relation, 0):,}" for relation in (NONE, *LEAKS, NAMESAKE)]
    leaking = sum(counts.get(relation, 0) for relation in LEAKS)
    shares = [leaking / sum(counts.values()), audit.counts["leaking"] / audit.counts["classes"]]
    return (one.name, one.sample, *cells, *(f"{share:.1%}" for share in shares))


def _threshold(row: Mapping[str, float]) -> Row:
    return (f"{row['threshold']:.2f}", *(f"{row[name]:,}" for name in ("near", "far", "below", "above")))


def _too_strict(one: Listed, audit: Audit) -> Iterator[Row]:
    """Classes below a known one of which a picture was kept as showing none."""
    assert audit.images is not None
    kept = {row.id: row.kept for row in audit.images.classes}
    taxonomy = load()
    for leak in audit.leaking:
        if leak.relation == "below" and kept[leak.id]:
            yield (one.name, " > ".join(taxonomy.name(wnid) for wnid in leak.path), f"{kept[leak.id]:,}")


def as_table(found: Audited, facts: Path) -> pa.Table:
    """Return a row a class; of a list that nobody may copy, the leaking classes alone."""
    rows = [
        {
            "list": one.name,
            "origin": one.origin(facts),
            "licence": one.licence,
            "against": "its own" if one.known is not None else one.against,
            "class_id": leak.id,
            "known": leak.other,
            "known_name": leak.other_name,
            "known_gloss": leak.other_gloss,
            **{key: value for key, value in asdict(leak).items() if key in SCHEMA.names},
            "path": " ".join(leak.path),
            "mean": None if leak.mean is None else round(leak.mean, DIGITS),
            "drop": leak.relation in LEAKS,
        }
        for one, audit in found
        for leak in (audit.classes if one.whole else audit.leaking)
    ]
    return pa.Table.from_pylist(rows, SCHEMA)


def filled(page: str, made: Iterable[Sequence[Row]]) -> str:
    """Return the page with the rows of its tables, in order, in place of those that it has."""
    remaining, lines, inside = iter(made), [], False
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
