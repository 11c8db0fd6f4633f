"""The command that audits sets of pictures for traces of a resizer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from wordnet_splits.sources.roots import parse_roots
from wordnet_splits.terminal.options import Json, RootOptions, add_command
from wordnet_splits.terminal.output import (
    DONE,
    LEFT_OUT,
    NEGATIVE,
    print_first,
    print_result,
    print_table,
    to_stderr,
    to_stdout,
)

if TYPE_CHECKING:
    from fix_resize.auditing.audit import Report
    from fix_resize.auditing.measurements import SkippedPicture
    from fix_resize.auditing.verdict import PairedAudit

MAX_LINES: Final = 10
"""Skipped pictures listed on the terminal."""

SET_NOTE: Final = (
    "A SET is a folder of images (or of Parquet with images), a group of a manifest BENCHMARK:GROUP[:SPLIT], "
    "one of a folder with a manifest, a packed store or an output DIR:GROUP[:SPLIT], or a published dataset "
    "SOURCE:SPLIT."
)


def add_commands(app: typer.Typer) -> None:
    """Add the command ``audit``."""
    examples = [
        "fix-resize audit decimated --reference fixed --originals photographs",
        "fix-resize audit decimated --reference fixed --json",
    ]
    add_command(app, "audit", audit_set, examples, notes=SET_NOTE)


def audit_set(
    pictures: Annotated[str, typer.Argument(metavar="SET", help="The pictures to audit.")],
    reference: Annotated[str, typer.Option(metavar="SET", help="Set to compare with.")] = "cifar100:test",
    originals: Annotated[
        str | None, typer.Option(metavar="SET", help="The pictures before resizing, with the same names.")
    ] = None,
    root: RootOptions = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Number of pictures of the set to score, sampled by a hash.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for scores, histogram and images.")] = None,
    json: Json = False,
) -> int:
    """Find out whether a set was resized without a low-pass filter, from pairs if there are originals.

    Exit code 1: it is filtered in another way, aliased, altered or suspicious; 3: pictures were left out.
    """
    import fix_resize
    from wordnet_splits.base.progress import OnStderr

    report = fix_resize.audit(
        pictures,
        reference=reference,
        originals=originals,
        roots=parse_roots(root or []),
        limit=limit,
        out=out,
        progress=OnStderr(),
    )
    result = {**report.as_dict(), "files": [str(path) for path in report.files]}
    print_result(result, json, lambda: _print_report(report, originals is not None))
    _print_skipped(report.label, report.left_out)
    _print_skipped(report.reference, report.reference_left_out)
    if not report.audit.passed:
        return NEGATIVE
    return LEFT_OUT if report.left_out or report.reference_left_out else DONE


def _print_report(report: Report, with_originals: bool) -> None:
    height, width = report.size
    total = f" of {report.total:,}" if len(report.scores) < report.total else ""
    to_stdout(f"set        {report.label}: {len(report.scores):,}{total} pictures of {height} x {width}")
    to_stdout(f"reference  {report.reference}: {len(report.reference_variation):,} pictures")
    if with_originals:
        to_stdout(f"originals  of {report.pairs:,} of the pictures")
    if report.other_files:
        to_stdout(f"           {report.other_files:,} other files ignored")
    to_stdout()
    rows = [
        ("AUROC of total variation (above .5: rougher)", *_interval_texts(report.audit.signed)),
        ("AUROC of the smoothness score (above .5: unlike)", *_interval_texts(report.audit.absolute)),
        ("share whiter than 99% of the reference", *_interval_texts(report.audit.white)),
    ]
    print_table(("beside the reference", "value", "95% interval"), rows)
    if report.audit.paired is not None:
        _print_pairs(report.audit.paired)
    to_stdout()
    to_stdout(report.audit.sentence)
    for path in report.files:
        to_stderr(f"wrote {path}")


def _print_pairs(paired: PairedAudit) -> None:
    quantiles = paired.as_dict()
    titles = {"RMS difference, grey levels": "difference", "aliasing, nearest neighbour being 1": "aliasing"}
    to_stdout()
    print_table(
        ("beside fix of its own original", "5%", "median", "95%"),
        [(title, *(f"{v:.2f}" for v in quantiles[name].values())) for title, name in titles.items()],
    )


def _interval_texts(interval: tuple[float, float, float]) -> tuple[str, str]:
    value, lo, hi = interval
    return f"{value:.3f}", f"{lo:.3f} to {hi:.3f}"


def _print_skipped(label: str, skipped: Sequence[SkippedPicture]) -> None:
    lines = [f"  left out of {label}: {s.image_id}: {s.reason}: {s.detail}" for s in skipped]
    print_first(lines, MAX_LINES, of=f" of {label}")
