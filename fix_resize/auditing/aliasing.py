"""Compare an image with the `fix` rendering of its original: equal, filtered differently, or aliased.

With any linear filter before or after the reduction, a reduced image consists of weighted low frequencies of
its original and of aliased high frequencies. Small neighbourhoods of the `fix` rendering span the low
frequencies, and few of the aliased ones. The difference is therefore regressed, by least squares
over all pixels and channels, first on the 5 x 5 neighbourhoods of the `fix` rendering and a constant, then on
the 3 x 3 neighbourhoods of unfiltered decimations of the same original (nearest neighbour at the centres and
at the corners, and the mean of the four nearest, each from the full image and from its 256 pixels). A blur
after the decimation is a weighting of such neighbourhoods, so it does not hide aliasing. The method and its
thresholds are new here; docs/evidence/resizing.md has the study.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Final, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt
from PIL import Image

from fix_resize.resize import apply, interpolate_neighbours
from fix_resize.spec import CenterCrop, ResizeSpec
from fix_resize.windows import Floats
from wordnet_splits.base.digests import Pixels

PairFinding = Literal["clean", "filtered", "aliased", "altered"]
FINDINGS: Final[tuple[PairFinding, ...]] = get_args(PairFinding)

SAME_WITHIN: Final = 1.5
"""Largest RMS difference from the `fix` rendering, in grey levels, of a clean image."""

ALIASED_FROM: Final = 0.27
"""Smallest amplitude of an aliased image, relative to nearest neighbour of the same original."""

ALIASING_SHARE: Final = 0.2
"""Smallest share of aliasing in the residual of the filter, in an aliased image."""

EXPLAINED_SHARE: Final = 0.5
"""Smallest share of the squared difference that is explained in an image filtered differently."""

_MARGIN: Final = 2
_FILTER_RADIUS, _ALIASING_RADIUS = 2, 1  # neighbourhoods in the fix rendering and in decimations
_FILTER_COLUMNS: Final = (2 * _FILTER_RADIUS + 1) ** 2 + 1
_NEAREST: Final = (0, 1)  # decimations that define the unit of amplitudes


class Pair(NamedTuple):
    """An image compared with the `fix` rendering of its original.

    Attributes
    ----------
    difference : RMS difference in grey levels.
    aliasing : amplitude of aliasing, relative to nearest neighbour; 0 for a clean image.
    unexplained : share of the squared difference that neither a filter nor aliasing explains.
    finding : ``clean``, ``filtered`` (by another low-pass filter), ``aliased``, or ``altered`` otherwise.
    """

    difference: float
    aliasing: float
    unexplained: float
    finding: PairFinding


class Original:
    """An image at its original size, to compare with its small renderings.

    Parameters
    ----------
    image : RGB image.
    spec : the `fix` recipe at the size of the renderings; its last stage is the reduction.
    """

    def __init__(self, image: Image.Image, spec: ResizeSpec) -> None:
        self._image = image
        self._square = apply(replace(spec, stages=spec.stages[:-1]), image)
        reduction = (spec.stages[-1], CenterCrop(spec.side))
        self.fix: Pixels = apply(replace(spec, stages=reduction), Image.fromarray(self._square))

    def compare(self, pixels: Pixels) -> Pair:
        """Compare a rendering of this image, (side, side, 3) uint8, with `fix`."""
        change = pixels.astype(np.float64) - self.fix
        difference = float(np.sqrt((change**2).mean()))
        if difference <= SAME_WITHIN:
            return Pair(difference, 0.0, 0.0, "clean")
        if len(self.fix) < 4 * _MARGIN + 4:  # too few pixels to fit a filter
            return Pair(difference, 0.0, 1.0, "altered")
        columns, triangle = self._regressors
        inner = change[_MARGIN:-_MARGIN, _MARGIN:-_MARGIN].ravel()
        # the share that each column adds to the columns before it, as in a QR decomposition
        parts = np.linalg.solve(triangle, columns.T @ inner)
        filter_parts, aliasing_parts = parts[:_FILTER_COLUMNS], parts[_FILTER_COLUMNS:]
        total = float(inner @ inner)
        filter_residual = total - float(filter_parts @ filter_parts)
        aliased = float(aliasing_parts @ aliasing_parts)
        residual = max(filter_residual - aliased, 0.0)
        # this many random columns would explain as much by chance
        by_chance = len(aliasing_parts) * residual / (len(inner) - len(parts))
        energy = max(aliased - by_chance, 0.0)
        aliasing = float(np.sqrt(energy / len(inner)) / np.hypot(self._nearest_amplitude, 1.0))
        unexplained = residual / total if total else 0.0
        if aliasing >= ALIASED_FROM and energy >= ALIASING_SHARE * filter_residual:
            return Pair(difference, aliasing, unexplained, "aliased")
        explained = unexplained <= 1 - EXPLAINED_SHARE
        return Pair(difference, aliasing, unexplained, "filtered" if explained else "altered")

    @property
    def _nearest_amplitude(self) -> float:
        """RMS residual of the filter in nearest neighbour of this image, in grey levels.

        The larger of the values for the full image and for its 256 pixels.
        """
        columns, triangle = self._regressors
        rows = [_FILTER_COLUMNS + n for n in _NEAREST]
        norms = np.linalg.norm(triangle[rows, _FILTER_COLUMNS:], axis=1)
        return float(norms.max() / np.sqrt(len(columns)))

    @cached_property
    def _regressors(self) -> tuple[Floats, Floats]:
        """Return the columns, (pixels, n), the filter first, and the Cholesky factor of X^T X."""
        side = len(self.fix)
        full = np.asarray(self._image)
        short = min(full.shape[:2])
        top, left = (full.shape[0] - short) // 2, (full.shape[1] - short) // 2
        squares = (self._square, full[top : top + short, left : left + short])
        columns = _neighbours(self.fix, _FILTER_RADIUS)
        columns.append(np.ones_like(columns[0]))
        neighbours = [
            _neighbours(decimate(square, side), _ALIASING_RADIUS)
            for decimate in (_centres, _corners, _bilinear)
            for square in squares
        ]
        middle = len(neighbours[0]) // 2
        columns += [neighbours[n].pop(middle) for n in _NEAREST]
        columns += [column for around in neighbours for column in around]
        matrix = np.stack(columns, axis=1)
        products = matrix.T @ matrix
        # a flat image has equal columns: a small ridge keeps the matrix invertible
        ridge = np.trace(products) / len(products) * 1e-10 + 1e-10
        return matrix, np.linalg.cholesky(products + ridge * np.eye(len(products)))


def _centres(square: Pixels, side: int) -> Floats:
    """Sample the pixel at the centre of each output pixel, as Pillow does."""
    indices = ((np.arange(side) + 0.5) * len(square) / side).astype(np.int64)
    return square[indices][:, indices].astype(np.float64)


def _corners(square: Pixels, side: int) -> Floats:
    """Sample the pixel at the corner of each output pixel, as OpenCV and PyTorch do."""
    indices = np.arange(side) * len(square) // side
    return square[indices][:, indices].astype(np.float64)


def _bilinear(square: Pixels, side: int) -> Floats:
    """Interpolate the four pixels around each centre, as bilinear does without antialias."""
    rows = interpolate_neighbours(square, side, 0)
    return np.asarray(interpolate_neighbours(rows, side, 1), dtype=np.float64)


def _neighbours(image: npt.NDArray[np.generic], radius: int) -> list[Floats]:
    """Return the inner pixels shifted by each offset of a neighbourhood, row by row, each flattened."""
    values = image.astype(np.float64)
    ends = [(_MARGIN + by, len(values) - _MARGIN + by) for by in range(-radius, radius + 1)]
    return [values[top:bottom, left:right].ravel() for top, bottom in ends for left, right in ends]
