"""Rank correlations of class nearness with class AUROC, from the committed results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import mean

from loaders.harness import Results, nearness
from loaders.harness.comparison.class_nearness import REFERENCE

from .measured import intervals, means, text_of

RUNGS = [f"rung-{n}" for n in range(1, 6)]
FOLDERS = {
    "unknown-cifar-tinyval-all": ["cifar-60"],
    "rungs-cifar100-all": RUNGS,
    "unknown-cifar-tinyval-resnet20-short": ["cifar-60"],
}
NAMES = {
    "path": "path (distance and Leacock-Chodorow order alike)",
    "wup_wn": "Wu-Palmer (wup_wn)",
    "wup_perl": "Wu-Palmer (wup_perl)",
    "wup": "Wu-Palmer (NLTK's wup)",
}
"""Measure -> its name on the page, if different."""
SHOWN = ("msp", "knn")
"""Detectors whose AUROC on the rungs is shown with its interval."""


def rung(folder: Path, group: str) -> tuple[str, ...]:
    """Return a rung's mean and range of AUROC over detectors, and AUROC and interval of each in `SHOWN`."""
    values = {d.partition("[")[0]: v for (_, d, m), v in means(folder, group).items() if m == "auroc"}
    bounds = {d.partition("[")[0]: v for (_, d, m), v in intervals(folder, group).items() if m == "auroc"}
    span = f"{min(values.values()):.1f} to {max(values.values()):.1f}"
    chosen_texts = (text_of(values[name], bounds[name]) for name in SHOWN)
    return (group, f"{mean(values.values()):.1f}", span, *chosen_texts)


def tables(results: Path) -> Iterator[Iterable[tuple[str, ...]]]:
    """Yield detectors, the rungs, and measures to the nearest class and to all on average."""
    reports = [nearness(Results.read(results / name), groups=groups) for name, groups in FOLDERS.items()]
    columns = [
        {entry.detector: entry for entry in each.correlations if (entry.measure, entry.to) == REFERENCE}
        for each in reports[:2]
    ]
    names = sorted({*columns[0], *columns[1]})
    names.sort(key=lambda name: mean(c[name].rho for c in columns if name in c))
    yield [
        (
            name,
            *(
                text
                for column in columns
                for text in (
                    (f"{column[name].rho:.3f}", f"{column[name].lo:.3f} to {column[name].hi:.3f}")
                    if name in column
                    else ("-", "-")
                )
            ),
        )
        for name in names
    ]
    yield [rung(results / "rungs-cifar100-all", group) for group in RUNGS]
    by_measure = [{(entry.measure, entry.to): entry for entry in each.measures} for each in reports]
    order = sorted(
        sorted({measure for measure, _ in by_measure[0]}), key=lambda m: by_measure[0][m, "nearest"].rho
    )
    for to in ("nearest", "average"):
        yield [
            (
                NAMES.get(measure, measure),
                *(
                    text
                    for entry in (each[measure, to] for each in by_measure)
                    for text in (
                        f"{entry.rho:.3f} ({entry.lo:.3f} to {entry.hi:.3f})",
                        "-" if entry.weaker is None else f"{entry.weaker_lo:.3f} to {entry.weaker_hi:.3f}",
                    )
                ),
            )
            for measure in order
        ]
