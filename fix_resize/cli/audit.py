"""Commands that look for what a resizer left behind: audit, and study."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wordnet_splits.base.errors import SplitsError, unknown
from wordnet_splits.sources.roots import parse_roots
from wordnet_splits.terminal.options import Json, RootOptions, add_command
from wordnet_splits.terminal.output import (
    DONE,
    LEFT_OUT,
    NEGATIVE,
    print_first,
    print_json,
    print_table,
    to_stderr,
    to_stdout,
)

if TYPE_CHECKING:
    from fix_resize.auditing.audit import Report
    from fix_resize.auditing.measurements import SkippedPicture
    from fix_resize.auditing.pictures import PictureSet
    from fix_resize.auditing.verdict import PairedAudit
    from wordnet_splits.sources.roots import Roots

SHOWN = 10
REFERENCE = "cifar100:test"

Reference = Annotated[str, typer.Option(metavar="SET", help="What to compare with.")]
Limit = Annotated[int | None, typer.Option(min=1, help="Pictures to take of each set, drawn by a hash.")]

SETS = (
    "A SET is a folder of images (or of Parquet with images), a group of a manifest BENCHMARK:GROUP[:SPLIT], "
    "one of a folder with a manifest, a packed store or an output DIR:GROUP[:SPLIT], or a published dataset "
    "SOURCE:SPLIT."
)


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    examples = [
        "fix-resize audit decimated --reference fixed --originals photographs",
        "fix-resize audit decimated --reference fixed --json",
    ]
    add_command(app, "audit", audit_set, examples, notes=SETS)
    examples = [
        "fix-resize study mine=photographs --reference fixed",
        "fix-resize study photographs --reference fixed --spec fix --spec nearest",
    ]
    add_command(app, "study", study_specs, examples, notes=SETS)


def audit_set(
    pictures: Annotated[str, typer.Argument(metavar="SET", help="The pictures to audit.")],
    reference: Reference = REFERENCE,
    originals: Annotated[
        str | None, typer.Option(metavar="SET", help="What the pictures were made from, by the same names.")
    ] = None,
    root: RootOptions = None,
    limit: Limit = None,
    out: Annotated[Path | None, typer.Option(help="Folder for scores, histogram and images.")] = None,
    json: Json = False,
) -> int:
    """Tell whether a set was resized without a low-pass filter, pair by pair where there are originals.

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
    if json:
        print_json({**report.as_dict(), "files": [str(path) for path in report.files]})
    else:
        _print_report(report, originals is not None)
        for path in report.files:
            to_stderr(f"wrote {path}")
    _say_left_out(report.label, report.left_out)
    _say_left_out(report.reference, report.reference_left_out)
    if not report.audit.passed:
        return NEGATIVE
    return LEFT_OUT if report.left_out or report.reference_left_out else DONE


def study_specs(
    sets: Annotated[
        list[str],
        typer.Argument(metavar="SET", help="Pictures at the size they were taken; NAME=SET names them."),
    ],
    reference: Reference = REFERENCE,
    spec: Annotated[
        list[str] | None,
        typer.Option("--spec", help="A spec to try; repeatable. All of the reference's size by default."),
    ] = None,
    root: RootOptions = None,
    limit: Limit = None,
    out: Annotated[Path | None, typer.Option(help="Folder for table, JSON and histograms.")] = None,
    grid: Annotated[
        Path | None, typer.Option(help="PNG of some of the images under every spec, side by side.")
    ] = None,
    json: Json = False,
) -> int:
    """Show what every resizer, sound or broken, does to sets of photographs."""
    from fix_resize.auditing.audit import check_out
    from fix_resize.auditing.pictures import open_pictures
    from tools.study.comparison import COLUMNS, FIGURES, compare_specs
    from fix_resize.spec import spec_names
    from wordnet_splits.base.progress import OnStderr

    for name in spec or ():
        if name not in spec_names():
            raise unknown("resize spec", name, spec_names(), where="--spec")
    roots = parse_roots(root or [])
    named = [_named(text) for text in sets]
    for folder in (out, None if grid is None else grid.parent):
        if folder is not None:
            check_out(folder, [reference, *(place for _, place in named)])
    opened = _open_all(named, roots)
    against = open_pictures(reference, roots)
    comparison = compare_specs(opened, spec, against, limit=limit, progress=OnStderr())
    files: list[Path] = []
    if out is not None or grid is not None:
        from fix_resize.auditing.output import write_comparison, write_side_by_side

        files += write_comparison(comparison, out) if out is not None else []
        files += [write_side_by_side(comparison, opened, grid)] if grid is not None else []
    if json:
        print_json({**comparison.as_dict(), "files": [str(path) for path in files]})
    else:
        print_table(COLUMNS, comparison.rows(), right=FIGURES)
        for path in files:
            to_stderr(f"wrote {path}")
    for label, entries in comparison.left_out.items():
        _say_left_out(label, entries)
    return LEFT_OUT if any(comparison.left_out.values()) else DONE


def _named(text: str) -> tuple[str, str]:
    """Return name and place of ``NAME=SET``; a set without a name is called as it is."""
    name, equals, place = text.partition("=")
    if not equals or "/" in name or Path(text).exists():
        return text, text
    if not name or not place:
        raise SplitsError(f"{text!r} is not NAME=SET", hint="as in textures=data/dtd")
    return name, place


def _open_all(named: Sequence[tuple[str, str]], roots: Roots) -> list[tuple[str, PictureSet]]:
    from fix_resize.auditing.pictures import open_pictures

    if len({name for name, _ in named}) < len(named):
        raise SplitsError("two sets have one name", hint="name them: NAME=SET")
    return [(name, open_pictures(place, roots, original=True)) for name, place in named]


def _print_report(report: Report, with_originals: bool) -> None:
    height, width = report.size
    drawn = f" of {report.drawn_from:,}" if len(report.scores) < report.drawn_from else ""
    to_stdout(f"set        {report.label}: {len(report.scores):,}{drawn} pictures of {height} x {width}")
    to_stdout(f"reference  {report.reference}: {len(report.reference_variation):,} pictures")
    if with_originals:
        to_stdout(f"originals  of {report.pairs:,} of the pictures")
    if report.others:
        to_stdout(f"           {report.others:,} other files ignored")
    to_stdout()
    rows = [
        ("AUROC of total variation (above .5: rougher)", *_texts(report.audit.signed)),
        ("AUROC of the smoothness score (above .5: unlike)", *_texts(report.audit.absolute)),
        ("share whiter than 99% of the reference", *_texts(report.audit.white)),
    ]
    print_table(("beside the reference", "value", "95% interval"), rows)
    if report.audit.paired is not None:
        _print_pairs(report.audit.paired)
    to_stdout()
    to_stdout(report.audit.sentence)


def _print_pairs(paired: PairedAudit) -> None:
    quantiles = paired.as_dict()
    named = {"RMS difference, grey levels": "difference", "aliasing, nearest neighbour being 1": "aliasing"}
    to_stdout()
    print_table(
        ("beside fix of its own original", "5%", "median", "95%"),
        [(text, *(f"{v:.2f}" for v in quantiles[name].values())) for text, name in named.items()],
    )


def _texts(estimate: tuple[float, float, float]) -> tuple[str, str]:
    value, lo, hi = estimate
    return f"{value:.3f}", f"{lo:.3f} to {hi:.3f}"


def _say_left_out(label: str, entries: Sequence[SkippedPicture]) -> None:
    lines = [f"  left out of {label}: {e.image_id}: {e.reason}: {e.detail}" for e in entries]
    print_first(lines, SHOWN, of=f" of {label}")
