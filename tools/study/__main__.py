"""The study of resizers in docs/fix-study.md and docs/study: which leave traces, and what audits find.

    python -m tools.study specs NAME=SET... [--reference SET] [--root NAME=DIR] [--spec NAME] [--out DIR]
    python -m tools.study thresholds DATA [--out FILE]

``specs`` audits sets of photographs under every resize spec; ``thresholds`` fits the thresholds of the audit
on one half of each set and shows its verdicts on both (a minute). A SET is named as in ``fix-resize audit``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from fix_resize.auditing.set_audit import check_out
from fix_resize.spec import get_spec
from tools.study.comparison import compare_specs, write_comparison, write_grid
from tools.study.thresholds import markdown
from wordnet_splits.base import files
from wordnet_splits.base.errors import SplitsError
from wordnet_splits.base.progress import OnStderr
from wordnet_splits.image_sets import open_images
from wordnet_splits.sources.roots import parse_roots


def main(words: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.study")
    commands = parser.add_subparsers(required=True)
    specs = commands.add_parser("specs", help="audit sets of photographs under every resize spec")
    specs.set_defaults(run=study_specs)
    specs.add_argument("sets", nargs="+", metavar="[NAME=]SET", help="pictures at their original size")
    specs.add_argument("--reference", default="cifar100:test", metavar="SET", help="set to compare with")
    specs.add_argument(
        "--spec", action="append", help="a spec; repeatable; by default all of the reference's size"
    )
    specs.add_argument("--root", action="append", default=[], metavar="NAME=DIR", help="folder of a source")
    specs.add_argument("--limit", type=int, help="number of pictures of each set, sampled by a hash")
    specs.add_argument("--out", type=Path, help="folder of table.md, study.json and smoothness.svg")
    specs.add_argument("--grid", type=Path, help="PNG of some images under every spec")
    thresholds = commands.add_parser("thresholds", help="fit the thresholds of audits")
    thresholds.set_defaults(run=study_thresholds)
    thresholds.add_argument("data", type=Path, help="folder of the datasets")
    thresholds.add_argument("--out", type=Path, default=Path("docs/study/thresholds.md"))
    options = parser.parse_args(words)
    try:
        options.run(options)
    except SplitsError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def study_specs(options: argparse.Namespace) -> None:
    """Print the table of ``specs`` and write its files."""
    for name in options.spec or ():
        get_spec(name)
    names = [_split_name(text) for text in options.sets]
    if len({name for name, _ in names}) < len(names):
        raise SplitsError("two sets have the same name", hint="name them: NAME=SET")
    for folder in (options.out, options.grid and options.grid.parent):
        if folder is not None:
            check_out(folder, [options.reference, *(location for _, location in names)])
    roots = parse_roots(options.root)
    sets = [(name, open_images(location, roots, as_stored=True)) for name, location in names]
    reference = open_images(options.reference, roots)
    comparison = compare_specs(sets, options.spec, reference, limit=options.limit, progress=OnStderr())
    print(comparison.markdown())
    paths = write_comparison(comparison, options.out) if options.out else []
    if options.grid:
        paths.append(write_grid(comparison, sets, options.grid))
    for path in paths:
        print(f"wrote {path}", file=sys.stderr)
    for label, skipped in comparison.left_out.items():
        for picture in skipped:
            print(f"left out of {label}: {': '.join(picture)}", file=sys.stderr)


def _split_name(text: str) -> tuple[str, str]:
    """Return name and location of ``NAME=SET``; a set without a name is called by its location."""
    name, equals, location = text.partition("=")
    if not equals or "/" in name or Path(text).exists():
        return text, text
    if not name or not location:
        raise SplitsError(f"{text!r} is not NAME=SET", hint="as in textures=data/dtd")
    return name, location


def study_thresholds(options: argparse.Namespace) -> None:
    """Write the page of ``thresholds``."""
    files.write_text(options.out, markdown(options.data))


if __name__ == "__main__":
    sys.exit(main())
