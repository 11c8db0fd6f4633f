"""The tables of ``docs/evidence/audit.md`` and ``docs/audit.parquet``, computed from the lists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa

from tools.audits.reading import Listed
from wordnet_splits.audit.images import NONE
from wordnet_splits.audit.report import LEAKS, NAMESAKE, Audit
from wordnet_splits.audit.thresholds import thresholds
from wordnet_splits.base.parquet import schema_of

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
    yield [_kept(class_list, audit) for class_list, audit in audits if class_list.sample]
    large = thresholds()
    yield [_threshold(row) for row in large.counts(large.summary())]


def _counts(class_list: Listed, audit: Audit) -> Row:
    counts = audit.counts
    figures = [audit.known, counts["classes"], *(counts[relation] for relation in LEAKS), counts["leaking"]]
    return (class_list.name, class_list.cite, *(f"{n:,}" for n in figures))


def _kept(class_list: Listed, audit: Audit) -> Row:
    """Return the images kept in the list's sample by relation, and the leaking shares of both."""
    assert audit.images is not None
    (sample,) = (sample for sample in audit.images.samples if sample.name == class_list.sample)
    counts = sample.by_relation
    cells = [f"{counts.get(relation, 0):,}" for relation in (NONE, *LEAKS, NAMESAKE)]
    leaking = sum(counts.get(relation, 0) for relation in LEAKS)
    shares = [leaking / sum(counts.values()), audit.counts["leaking"] / audit.counts["classes"]]
    return (class_list.name, class_list.sample, *cells, *(f"{share:.1%}" for share in shares))


def _threshold(row: Mapping[str, float]) -> Row:
    return (f"{row['threshold']:.2f}", *(f"{row[name]:,}" for name in ("near", "far", "below", "above")))


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
