"""OpenOOD v1.5's table 1, CIFAR-100, beside ours, from the committed results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from scipy.stats import kendalltau

from .measured import means

FOLDER = "openood-cifar100-drawn"
# Table 1, CIFAR-100: near-OOD AUROC, far-OOD AUROC, in percent, means of three runs.
TABLE_1 = {
    "openmax": ("OpenMax", 76.41, 79.48),
    "msp": ("MSP", 80.27, 77.76),
    "tempscale": ("TempScale", 80.90, 78.74),
    "odin": ("ODIN", 79.90, 79.28),
    "mds": ("MDS", 58.69, 69.39),
    "mdsens": ("MDSEns", 46.31, 66.00),
    "rmds": ("RMDS", 80.15, 82.92),
    "gram": ("Gram", 51.66, 73.36),
    "energy": ("EBO", 80.91, 79.77),
    "opengan": ("OpenGAN", 65.98, 67.88),
    "gradnorm": ("GradNorm", 70.13, 69.14),
    "react": ("ReAct", 80.77, 80.39),
    "mls": ("MLS", 81.05, 79.67),
    "klm": ("KLM", 76.56, 76.24),
    "vim": ("VIM", 74.98, 81.70),
    "knn": ("KNN", 80.18, 82.40),
    "dice": ("DICE", 79.38, 80.01),
    "rankfeat": ("RankFeat", 61.88, 67.10),
    "ash": ("ASH", 78.20, 80.58),
    "she": ("SHE", 78.95, 76.92),
}


def measured(folder: Path, on: str) -> Mapping[str, float]:
    """Return the AUROC of each detector, by the registry's name."""
    found = means(folder, on)
    return {
        detector.partition("[")[0]: value
        for (_, detector, metric), value in found.items()
        if metric == "auroc" and detector != "(model)"
    }


def tables(results: Path) -> Iterator[Iterable[tuple[str, ...]]]:
    """Yield the rows by descending near-OOD AUROC of the paper, then those of the agreement."""
    sets = {on: measured(results / FOLDER, on) for on in ("(mean) near", "(mean) far")}
    near, far = sets.values()
    order = sorted((name for name in TABLE_1 if name in near), key=lambda name: -TABLE_1[name][1])
    places = [sorted(one, key=lambda name: -one[name]) for one in (near, far)]
    yield [
        (
            TABLE_1[name][0],
            f"{TABLE_1[name][1]:.2f}",
            f"{near[name]:.2f}",
            str(places[0].index(name) + 1),
            f"{TABLE_1[name][2]:.2f}",
            f"{far[name]:.2f}",
            str(places[1].index(name) + 1),
        )
        for name in order
    ]
    for column, one in ((1, near), (2, far)):
        tau = kendalltau([TABLE_1[name][column] for name in order], [one[name] for name in order]).statistic
        yield [(("near", "far")[column - 1], str(len(order)), f"{tau:.2f}")]
