"""Commands on negative words: audit negatives, audit mine-negatives."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wordnet_splits.audit.commands import AllRows, AuditOut, ColumnOfWords, report_audit
from wordnet_splits.base.files import check_outputs, write_text
from wordnet_splits.base.terminal.options import Json, Manifests
from wordnet_splits.base.terminal.output import (
    DONE,
    print_result,
    to_stderr,
    to_stdout,
    write_output,
)
from wordnet_splits.cli.main import app

KnownClasses = Annotated[
    str,
    typer.Option(help="The ID classes: a source, a list, a file or BENCHMARK:GROUP, as for `audit list`."),
]


@app.command(
    "audit negatives",
    examples=[
        "wordnet-splits audit negatives neg_labels.txt --out ledger.csv --clean clean.txt",
        "wordnet-splits audit negatives words.tsv --known cifar100 --ood svhn --ood dtd",
    ],
)
def audit_negatives(
    words: Annotated[
        Path,
        typer.Argument(metavar="LIST", help="A file with a word a line, or a table with a column word."),
    ],
    known: KnownClasses = "imagenet1k",
    ood: Annotated[
        list[str] | None,
        typer.Option(
            help="An OOD set as a list of classes, or a benchmark for its near and far groups; repeatable. "
            "[default: every benchmark with these ID classes]"
        ),
    ] = None,
    column: ColumnOfWords = None,
    all_: AllRows = False,
    out: AuditOut = None,
    clean: Annotated[
        Path | None, typer.Option(help="File for the list without words related to ID classes.")
    ] = None,
    blind: Annotated[
        Path | None, typer.Option(help="File for the list without names of classes of the OOD sets.")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="File for a plot of the named share of each OOD set: .svg, .png or .pdf."),
    ] = None,
    manifests: Manifests = None,
    json: Json = False,
) -> int:
    """Check negative words of a vision-language detector: which name ID classes, or classes of OOD sets."""
    from wordnet_splits.audit.report_base import check_output
    from wordnet_splits.negatives.words import audit_negatives

    check_output(out)
    check_outputs(out, plot, clean, blind, inputs=(words, known, *(ood or ())), new=(clean, blind))
    report = audit_negatives(words, known, ood=ood, column=column, manifests=manifests)
    write_output(plot, report.plot)
    for path, write, words_left in (
        (clean, report.write_clean, report.clean),
        (blind, report.write_without_test_names, report.blind),
    ):
        if path is not None:
            write(path)
            to_stderr(f"{len(words_left):,} of {len(report.words):,} words written to {path}")
    return report_audit(report, out, json, all_)


@app.command(
    "audit mine-negatives",
    examples=[
        "wordnet-splits audit mine-negatives --count 10000 --out negatives.txt",
        "wordnet-splits audit mine-negatives --known cifar100 --blind tiny-imagenet --out blind.txt",
    ],
)
def mine_negatives(
    out: Annotated[Path, typer.Option(help="File for the words, one a line.")],
    known: KnownClasses = "imagenet1k",
    margin: Annotated[
        int, typer.Option(help="Fewest edges to an ID class, through the least common subsumer.")
    ] = 4,
    count: Annotated[int | None, typer.Option(help="Number of words; by default all.")] = None,
    below: Annotated[str, typer.Option(help="Only kinds of this noun, synset or wnid.")] = "physical entity",
    blind: Annotated[
        list[str] | None,
        typer.Option(help="An OOD set whose class names are left out, as --ood of `audit negatives`."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the order of words that are equally far.")] = 0,
    manifests: Manifests = None,
    json: Json = False,
) -> int:
    """Write nouns of WordNet that are far from every ID class, as negative words."""
    from wordnet_splits.negatives.mining import mine_negatives

    check_outputs(out, inputs=(known, *(blind or ())), new=(out,))
    words = mine_negatives(
        known,
        margin=margin,
        count=count,
        below=below,
        blind=blind or (),
        seed=seed,
        manifests=manifests,
    )
    write_text(out, "".join(f"{word}\n" for word in words))
    result = {"words": len(words), "out": str(out)}
    print_result(result, json, lambda: to_stdout(f"{len(words):,} words written to {out}"))
    return DONE
