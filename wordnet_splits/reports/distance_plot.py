"""The plot of how far the sets of a benchmark lie from its ID classes: a box a set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from wordnet_splits import plotting

if TYPE_CHECKING:
    from wordnet_splits.reports.distance import Distances

COLOURS = {"near": plotting.ORANGE, "far": plotting.BLUE}
"""Of the roles that detection is measured on; the others are grey."""
UNITS = {"distance": "edges to the nearest ID class"}


def draw_boxes(found: Distances, path: Path) -> None:
    """Write a box a set, from min to max with quartiles; SVG or PNG by the name.

    A set without synsets keeps its line, with a note in place of the box.
    """
    plotting.check_ending(path)
    plotting.require_plots("the plot of distances")
    from matplotlib.figure import Figure

    with plotting.settings("wordnet-splits"):
        figure = Figure(figsize=(6.4, 1.1 + 0.34 * len(found.sets)))
        axis = figure.subplots()
        for place, one in enumerate(reversed(found.sets)):
            if one.median is None:
                axis.text(
                    0.01, place, "no synset", transform=axis.get_yaxis_transform(), va="center", fontsize=7
                )
                continue
            box = {"whislo": one.min, "q1": one.q1, "med": one.median, "q3": one.q3, "whishi": one.max}
            axis.bxp(
                [box],
                positions=[place],
                vert=False,
                widths=0.55,
                showfliers=False,
                patch_artist=True,
                manage_ticks=False,
                boxprops={"facecolor": COLOURS.get(one.role, plotting.GREY), "edgecolor": plotting.BLACK},
                medianprops={"color": plotting.BLACK},
            )
        labels = [f"{one.group} ({one.role}, {one.classes:,})" for one in reversed(found.sets)]
        axis.set_yticks(range(len(labels)), labels=labels, fontsize=8, parse_math=False)
        axis.set_ylim(-0.6, len(labels) - 0.4)
        axis.set_xlabel(UNITS.get(found.measure, f"{found.measure} of the nearest ID class"), fontsize=8)
        axis.set_title(found.benchmark, fontsize=9, parse_math=False)
        axis.tick_params(length=2, labelsize=8, colors=plotting.BLACK)
        axis.spines[["top", "right"]].set_visible(False)
        figure.tight_layout()
        plotting.save(figure, path)
