"""Kim et al.'s table 6 beside ours in what is comparable, from the committed results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from .measured import means

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
COLUMNS = (
    ("(pooled) id", "accuracy", 1),
    ("(pooled) id", "aurc", 10),
    ("cifar-60", "fpr95_id_positive", 1),
    ("cifar-60", "auroc", 1),
    ("gaussian", "fpr95_id_positive", 1),
    ("gaussian", "auroc", 1),
)


def tables(results: Path) -> Iterator[Iterable[tuple[str, ...]]]:
    """Yield of each method a row of the paper and one of ours, then MCP of the network with dropout."""
    plain, dropout = (values(results / folder) for folder in FOLDERS)
    rows: list[tuple[str, ...]] = []
    for name, (title, *published) in TABLE_6.items():
        own = dropout if name == "mc_dropout" else plain
        rows += [(title, "paper", *published), ("", "ours", *own[name])]
    yield [*rows, (DROPOUT[0], "ours", *dropout[DROPOUT[1]])]


def values(folder: Path) -> dict[str, list[str]]:
    """Return the columns of each detector of a folder, by the registry's name, means of the runs."""
    found: dict[str, list[str]] = {}
    for group, metric, times in COLUMNS:
        for (_, detector, measured), value in means(folder, group).items():
            if measured == metric:
                found.setdefault(detector.partition("[")[0], []).append(f"{times * value:.2f}")
    return found
