"""How one picture differs from the `fix` rendering of its original: not at all, by a filter, by aliasing.

Whatever linear filter comes before or after the reduction, what a reduced picture has is the low frequencies
of its original, weighted, and what the high ones fold into. The first lie in the space of small
neighbourhoods of the `fix` rendering, the second mostly outside it. So the picture is regressed, by least
squares over all pixels and channels, first on the 5 x 5 neighbourhoods of the `fix` rendering and a constant,
then on the 3 x 3 neighbourhoods of what decimation without a filter makes of the same original (nearest
neighbour at the centres and at the corners, and the mean of the four nearest, each from the picture as taken
and from its 256 pixels). A blur after the decimation is a weighting of such neighbourhoods, so it does not
hide it. The method and its limits are ours; docs/study/thresholds.md shows what they
distinguish.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Final, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt
from PIL import Image

from fix_resize.broken import between_neighbours
from fix_resize.resize import apply
from fix_resize.spec import CenterCrop, ResizeSpec
from fix_resize.windows import Floats
from wordnet_splits.base.digests import Pixels

PairFinding = Literal["clean", "filtered", "aliased", "altered"]
FINDINGS: Final[tuple[PairFinding, ...]] = get_args(PairFinding)

SAME_WITHIN: Final = 1.5
"""Largest RMS difference from the `fix` rendering, in grey levels, of a picture that counts as clean."""

ALIASED_FROM: Final = 0.27
"""Least amplitude of aliasing, as a fraction of what nearest neighbour makes of the same original."""

ALIASING_SHARE: Final = 0.2
"""Least share of what no filter explains that must be aliasing: else the pictures are simply different."""

EXPLAINED_SHARE: Final = 0.5
"""Least share of the squared difference that a filter must explain, for another filter to be the finding."""

_REACH: Final = 2
_FILTER, _FOLDED = 2, 1  # reach of the neighbourhoods of the fix rendering, and of what is decimated
_COLUMNS: Final = (2 * _FILTER + 1) ** 2 + 1
_NEAREST: Final = (0, 1)  # columns of the decimations that an amplitude is measured in


class Pair(NamedTuple):
    """A picture beside the `fix` rendering of its original.

    Attributes
    ----------
    difference : RMS of the difference in grey levels.
    aliasing : amplitude of the aliasing in it, 1 being that of nearest neighbour; 0 where it is clean.
    unexplained : share of the squared difference that neither a filter nor aliasing explains.
    finding : ``clean``; ``filtered``, by another low-pass filter; ``aliased``; ``altered`` in another way.
    """

    difference: float
    aliasing: float
    unexplained: float
    finding: PairFinding


class Original:
    """A picture as it was taken, to compare its small renderings with.

    Parameters
    ----------
    image : RGB.
    spec : the `fix` recipe at the size of the renderings; its last stage is the reduction.
    """

    def __init__(self, image: Image.Image, spec: ResizeSpec) -> None:
        self._image = image
        self._middle = apply(replace(spec, stages=spec.stages[:-1]), image)
        last = (spec.stages[-1], CenterCrop(spec.side))
        self.fix: Pixels = apply(replace(spec, stages=last), Image.fromarray(self._middle))

    def compare(self, pixels: Pixels) -> Pair:
        """Say how a rendering of this picture, (side, side, 3) uint8, differs from `fix`."""
        change = pixels.astype(np.float64) - self.fix
        difference = _rms(change)
        if difference <= SAME_WITHIN:
            return Pair(difference, 0.0, 0.0, "clean")
        if len(self.fix) < 4 * _REACH + 4:  # too few pixels to tell a filter from anything else
            return Pair(difference, 0.0, 1.0, "altered")
        columns, triangle = self._regressors
        inner = change[_REACH:-_REACH, _REACH:-_REACH].ravel()
        # what each column explains beyond those before it, as a QR decomposition would say
        parts = np.linalg.solve(triangle, columns.T @ inner)
        filtered, folded = parts[:_COLUMNS], parts[_COLUMNS:]
        whole = float(inner @ inner)
        left = whole - float(filtered @ filtered)
        aliased = float(folded @ folded)
        rest = max(left - aliased, 0.0)
        # as many columns as these explain some of anything: that much is not counted as aliasing
        by_chance = len(folded) * rest / (len(inner) - len(parts))
        energy = max(aliased - by_chance, 0.0)
        aliasing = float(np.sqrt(energy / len(inner)) / np.hypot(self._nearest, 1.0))
        unexplained = rest / whole if whole else 0.0
        if aliasing >= ALIASED_FROM and energy >= ALIASING_SHARE * left:
            return Pair(difference, aliasing, unexplained, "aliased")
        explained = unexplained <= 1 - EXPLAINED_SHARE
        return Pair(difference, aliasing, unexplained, "filtered" if explained else "altered")

    @property
    def _nearest(self) -> float:
        """RMS, in grey levels, of what no filter explains in nearest neighbour of this picture.

        The larger of that from the picture as it was taken and that from its 256 pixels.
        """
        columns, triangle = self._regressors
        rows = [_COLUMNS + n for n in _NEAREST]
        return float(np.linalg.norm(triangle[rows, _COLUMNS:], axis=1).max() / np.sqrt(len(columns)))

    @cached_property
    def _regressors(self) -> tuple[Floats, Floats]:
        """Return the columns, (pixels, n), the filter's first, and the Cholesky factor of their products."""
        side = len(self.fix)
        taken = np.asarray(self._image)
        short = min(taken.shape[:2])
        top, left = (taken.shape[0] - short) // 2, (taken.shape[1] - short) // 2
        decimated = [
            picture
            for decimate in (_centres, _corners, _four)
            for picture in (
                decimate(self._middle, side),
                decimate(taken[top : top + short, left : left + short], side),
            )
        ]
        columns = _shifted(self.fix, _FILTER)
        columns.append(np.ones_like(columns[0]))
        shifts = [_shifted(picture, _FOLDED) for picture in decimated]
        middles = len(shifts[0]) // 2
        columns += [shifts[n].pop(middles) for n in _NEAREST]
        columns += [column for shifted in shifts for column in shifted]
        matrix = np.stack(columns, axis=1)
        products = matrix.T @ matrix
        # a flat picture has columns that are equal; the trifle added makes them count once
        trifle = np.trace(products) / len(products) * 1e-10 + 1e-10
        return matrix, np.linalg.cholesky(products + trifle * np.eye(len(products)))


def _centres(square: Pixels, side: int) -> Floats:
    """Keep the pixel at the centre of each output pixel, as Pillow does."""
    at = ((np.arange(side) + 0.5) * len(square) / side).astype(np.int64)
    return square[at][:, at].astype(np.float64)


def _corners(square: Pixels, side: int) -> Floats:
    """Keep the pixel at the corner of each output pixel, as OpenCV and PyTorch do."""
    at = np.arange(side) * len(square) // side
    return square[at][:, at].astype(np.float64)


def _four(square: Pixels, side: int) -> Floats:
    """Interpolate between the four pixels around each centre, as bilinear does without antialias."""
    rows = between_neighbours(square, side, 0)
    return np.asarray(between_neighbours(rows, side, 1), dtype=np.float64)


def _shifted(picture: npt.NDArray[np.generic], reach: int) -> list[Floats]:
    """Return what lies around each inner pixel, row by row of a neighbourhood, each flattened."""
    values = picture.astype(np.float64)
    ends = [(_REACH + by, len(values) - _REACH + by) for by in range(-reach, reach + 1)]
    return [values[top:bottom, left:right].ravel() for top, bottom in ends for left, right in ends]


def _rms(values: Floats) -> float:
    return float(np.sqrt((values**2).mean()))
