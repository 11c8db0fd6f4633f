"""The comparable cells of Kim et al.'s table 6 and of ours, with differences, from the committed results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

from loaders.harness import Results, compare
from wordnet_splits.benchmark.clusters import Level
from wordnet_splits.metrics import aurc, aurc_original, aurc_proposed, aurc_unknown, auroc

from .measured import means, text_of

FOLDERS = ("unknown-cifar-tinyval-kim", "unknown-cifar-tinyval-dropout")
DROPOUT = ("MCP of the network with dropout", "mcp")
# Table 6: accuracy, AURC x 1000 of misclassification, FPR95 and AUROC of near-OOD, then of Gaussian noise.
TABLE_6 = {
    "mcp": ("MCP", "74.43", "75.25", "86.50", "72.16", "84.61", "72.10"),
    "mc_dropout": ("MCdropout", "76.00", "66.16", "86.71", "72.37", "99.55", "65.41"),
    "ensemble": ("Ensemble", "79.45", "47.27", "82.40", "75.54", "34.73", "94.97"),
    "odin": ("ODIN", "74.43", "89.14", "85.04", "72.78", "67.28", "79.84"),
    "react": ("ReAct", "74.44", "90.08", "86.14", "72.37", "99.11", "55.84"),
    "openmax": ("OpenMax", "74.01", "162.61", "91.97", "64.15", "54.15", "82.99"),
}
METHODS_FOLDER = "unknown-cifar-tinyval-kim-methods"
# The same of networks that other methods train, by MCP; the key is the recipe.
TRAINED = {
    "kim-cifar-crl": ("CRL", "75.15", "68.53", "85.69", "72.95", "91.39", "69.11"),
    "kim-cifar-edl": ("EDL", "74.40", "73.39", "86.23", "72.72", "96.86", "72.05"),
    "kim-cifar-augmix": ("AugMix", "75.77", "65.94", "86.81", "73.12", "57.52", "88.93"),
}
COLUMNS = (
    ("(pooled) id", "accuracy", 1),
    ("(pooled) id", "aurc", 10),
    ("cifar-60", "fpr95_id_positive", 1),
    ("cifar-60", "auroc", 1),
    ("gaussian", "fpr95_id_positive", 1),
    ("gaussian", "auroc", 1),
)


PAIRS = (
    ("ensemble", "mcp"),
    ("mcp", "odin"),
    ("odin", "react"),
    ("react", "openmax"),
)
"""Neighbours in the paper's order by AURC of misclassification."""
MEASURED = (("aurc", "id", 1000, 1), ("auroc", "cifar-60", 100, 3))
"""(metric, place, times, its column in `TABLE_6` after the title)."""
OTHERS: tuple[Level, ...] = ("classes", "subtrees")
Better = dict[tuple[str, str], list[str]]
"""(a, b) -> improvement of a over b by metric, with its interval, and its intervals `OTHERS`, as printed."""


def differences(results: Path) -> Iterator[tuple[str, ...]]:
    """Yield the improvement of each method over the next in the paper's order, then of others, with ours."""
    plain, dropout = (better([Results.read(results / folder)]) for folder in FOLDERS)
    for a, b in PAIRS:
        yield (TABLE_6[a][0], TABLE_6[b][0], *compared(TABLE_6[a], TABLE_6[b], plain[a, b]))
    yield (*("MCdropout", DROPOUT[0]), *compared((), (), dropout["mc_dropout", "mcp"]))
    trained = [Results.read(results / folder) for folder in (FOLDERS[0], METHODS_FOLDER)]
    by_recipe = better(trained, ["mcp"], lambda name: name.split(" ")[0].rpartition("-")[0])
    for recipe in ("kim-cifar-crl", "kim-cifar-augmix"):
        row = TRAINED[recipe]
        yield (row[0], "MCP", *compared(row, TABLE_6["mcp"], by_recipe[recipe, "kim-cifar"]))


def compared(a: Sequence[str], b: Sequence[str], texts: Sequence[str]) -> Iterator[str]:
    """Yield the cells of a pair: for each metric the paper's difference and ours, then intervals `OTHERS`."""
    for (metric, *_, column), text in zip(MEASURED, texts, strict=False):
        value = (float(a[1 + column]) - float(b[1 + column])) * (-1 if metric == "aurc" else 1) if a else None
        yield from ("-" if value is None else f"{value:.2f}", text)
    yield from texts[len(MEASURED) :]


def better(
    results: Sequence[Results],
    detectors: Sequence[str] | None = None,
    key: Callable[[str], str] = lambda name: name.split(" ")[1].partition("[")[0],
) -> Better:
    """Return the differences of all pairs ``key(name)``, means of the runs; over `OTHERS` of near AUROC."""
    texts: Better = {}
    levels: list[tuple[str, str, int, Level]] = [(*where, "images") for *where, _ in MEASURED]  # type: ignore[misc]
    levels += [("auroc", "cifar-60", 100, over) for over in OTHERS]
    for metric, on, times, over in levels:
        options = {"metric": metric, "on": on, "over": over, "bootstrap": 1000}
        (ranking,) = compare(results, detectors=detectors, **options).rankings
        for pair in ranking.pairs:
            assert pair.lo is not None
            assert pair.hi is not None
            a, b = map(key, (pair.a, pair.b))
            value, lo, hi = (times * each for each in (pair.better, pair.lo, pair.hi))
            for names, ends in (((a, b), (lo, hi)), ((b, a), (-hi, -lo))):
                text = text_of(value if names == (a, b) else -value, ends)
                in_table = text if over == "images" else f"{ends[0]:.2f} to {ends[1]:.2f}"
                texts.setdefault(names, []).append(in_table)
    return texts


def tables(results: Path) -> Iterator[Iterable[tuple[str, ...]]]:
    """Yield the paper's row and our row of each method, then the differences between neighbours."""
    plain, dropout = (values(results / folder) for folder in FOLDERS)
    rows: list[tuple[str, ...]] = []
    for name, (title, *published) in TABLE_6.items():
        computed = dropout if name == "mc_dropout" else plain
        rows += [(title, "paper", *published), ("", "ours", *computed[name])]
    rows.append((DROPOUT[0], "ours", *dropout[DROPOUT[1]]))
    trained = values(results / METHODS_FOLDER, key=lambda model, _: model.split("/")[1].rpartition("-")[0])
    for name, (title, *published) in TRAINED.items():
        rows += [(title, "paper", *published), ("", "ours", *trained[name])]
    yield rows
    yield differences(results)


def against_near(results: Path) -> Iterator[tuple[str, ...]]:
    """Yield the rows of the fidelity page on the AURC of correct ID against near-OOD (section 4.3)."""
    of_counts = [f"{1000 * value:.2f}" for value in normal_aurcs()]
    what = "AURC x 1000 of correct ID against near, ImageNet-200, MCP"
    model = "normal confidences with the accuracy, AURC and AUROC of table 7"
    yield ("", f"{what}; `aurc_proposed` of {model}", "282.59", of_counts[0])
    yield ("", "the same by `aurc_original` and `aurc_unknown`", "282.59", ", ".join(of_counts[1:]))
    near, known = (
        10 * value
        for group, metric in (("cifar-60", "aurc_proposed"), ("(pooled) id", "aurc"))
        for (_, detector, measured), value in means(results / FOLDERS[0], group).items()
        if (detector, measured) == ("mcp", metric)
    )
    yield ("", "`aurc_proposed` on near and `aurc`, CIFAR-40, MCP", "-", f"{near:.2f}, {known:.2f}")


def normal_aurcs(
    accuracy: float = 0.8109, failures: float = 0.04212, near: float = 0.7751
) -> tuple[float, float, float]:
    """Return `aurc_proposed`, `aurc_original` and `aurc_unknown` of ImageNet-200 and Near ImageNet-200, MCP.

    The confidences of 10,000 ID and 10,000 near images are quantiles of normal distributions, one of correct,
    one of misclassified and one of near images, with the published accuracy, AURC of misclassification and
    AUROC.
    """
    n = 10_000
    sizes = (round(accuracy * n), n - round(accuracy * n), n)
    right, wrong, ood = (norm.ppf((np.arange(size) + 0.5) / size) for size in sizes)
    correct = np.arange(n) < sizes[0]

    def confidences(shift: float) -> np.ndarray:
        return np.concatenate([right, wrong - shift])

    of_id = confidences(solve(lambda shift: failures - aurc(confidences(shift), correct)))
    of_near = ood - solve(lambda shift: auroc(of_id, ood - shift) - near)
    pooled = (of_id, correct, of_near)
    return aurc_proposed(*pooled), aurc_original(of_id, of_near), aurc_unknown(*pooled)


def solve(rising: Callable[[float], float]) -> float:
    """Return where a rising function between 0 and 4 is 0."""
    return float(brentq(rising, 0, 4, xtol=1e-6))


def name_of(_model: str, detector: str) -> str:
    """Return the registry's name of a detector."""
    return detector.partition("[")[0]


def values(folder: Path, key: Callable[[str, str], str] = name_of) -> dict[str, list[str]]:
    """Return the columns of each ``key(model, detector)`` of a folder, means of the runs."""
    texts: dict[str, list[str]] = {}
    for group, metric, times in COLUMNS:
        for (model, detector, measured), value in means(folder, group).items():
            if measured == metric and detector != "(model)":
                texts.setdefault(key(model, detector), []).append(f"{times * value:.2f}")
    return texts
