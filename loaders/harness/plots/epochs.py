"""Palechor's figure 3: confidences over the epochs of training, from the model's own record."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.plotting import Plot
from wordnet_splits.base.shapes import Line, Lines

from .registry import plot_kind
from .subject import Subject

SPECIFICATION = "trained:"
COLUMNS = (("gamma_plus", "gamma+ (ID)"), ("gamma_minus", "gamma- (negatives)"), ("gamma", "gamma"))


@plot_kind("palechor-3", "gamma+ and gamma- over the epochs of training", paper="Palechor, figure 3")
def gammas_over_epochs(subject: Subject) -> Plot:
    """A line for each run; its record (``model.json``) must still lie where it was trained."""
    from ..checkpoints.files import read_metadata

    histories = {}
    for network in subject.networks():
        (about,) = [one for one in network.source.tables.about.runs if one.run == network.run]
        if about.weights.startswith(SPECIFICATION):
            histories[network.name] = read_metadata(Path(about.weights.removeprefix(SPECIFICATION)))[
                "history"
            ]
    panels = []
    for column, label in COLUMNS:
        lines = []
        for name, history in histories.items():
            held = [(row["epoch"], row[column]) for row in history if row.get(column) is not None]
            if held:
                epochs, values = zip(*held, strict=True)
                lines.append(Line(name, np.array(epochs), np.array(values)))
        if lines:
            panels.append(Lines(label, "epoch", label, tuple(lines)))
    if not panels:
        raise DataError(
            "no model here recorded gamma while it was trained",
            where=subject.benchmark,
            hint="`unknown-eval train` does, with a recipe that has negatives (BG, EOS)",
        )
    return Plot(f"{subject.benchmark}: confidence over epochs", tuple(panels))
