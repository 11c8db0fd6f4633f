"""Distances of answers from the truth in a hierarchy, and their balanced means.

The least common subsumer (LCS) of truth and answer is their common ancestor of greatest depth (ties to the
smaller wnid). Edges from the truth up to it are missing specificity, edges from the answer up to it are
wrong specificity: an answer above the truth has only the first, one below it only the second.

Reference: Wallin, Kahl and Hammarstrand. ProHOC: Probabilistic Hierarchical Out-of-Distribution
Classification via Multi-Depth Networks. CVPR 2025 (the balanced mean hierarchical distance).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from wordnet_splits.base.errors import DataError
from wordnet_splits.hierarchy.nodes import ClassHierarchy, Flags, Floats, Ints


@dataclass(frozen=True, eq=False)
class AnswerErrors:
    """The errors of n answers.

    Attributes
    ----------
    under : (n,) edges from the truth up to the LCS. over : (n,) edges from the answer up to the LCS.
    shared_depth, true_depth : (n,) depth of the LCS, and of the truth.
    specificity : (n,) information of the answer, as a share of log2(K).
    """

    under: Ints
    over: Ints
    shared_depth: Ints
    true_depth: Ints
    specificity: Floats

    @property
    def distance(self) -> Ints:
        """Edges between truth and answer through the LCS."""
        return np.asarray(self.under + self.over)

    @property
    def correct(self) -> Flags:
        """Whether the answer is the true node or an ancestor."""
        return np.asarray(self.over == 0)

    @property
    def exact(self) -> Flags:
        """Whether the answer is the truth."""
        return np.asarray(self.distance == 0)

    def at_depth(self, depth: int) -> Floats:
        """Return 1 for answers that share an ancestor of that depth with the truth, 0 for others.

        NaN where the truth itself is not so deep.
        """
        reached = (self.shared_depth >= depth).astype(np.float64)
        return np.where(self.true_depth >= depth, reached, np.nan)


def compare_answers(hierarchy: ClassHierarchy, truth: npt.ArrayLike, answers: npt.ArrayLike) -> AnswerErrors:
    """Return the errors of answers (n,) for images whose true nodes are ``truth`` (n,).

    Raises
    ------
    DataError : arrays of other shapes, or numbers of no node.
    """
    nodes = [np.asarray(values, np.int64) for values in (truth, answers)]
    if nodes[0].ndim != 1 or nodes[0].shape != nodes[1].shape:
        raise DataError(f"truth has the shape {nodes[0].shape}, answers {nodes[1].shape}, not (n,)")
    if any(((values < 0) | (values >= len(hierarchy))).any() for values in nodes):
        raise DataError(f"nodes have the numbers 0 to {len(hierarchy) - 1}")
    pairs, inverse = np.unique(np.column_stack(nodes), axis=0, return_inverse=True)
    errors = [_pair_errors(hierarchy, *pair) for pair in pairs.tolist()]
    under, over, shared = np.array(errors, np.int64).reshape(-1, 3)[inverse.reshape(-1)].T
    bits = hierarchy.information / np.log2(len(hierarchy.classes))
    return AnswerErrors(under, over, shared, hierarchy.depths[nodes[0]], bits[nodes[1]])


def _pair_errors(hierarchy: ClassHierarchy, truth: int, answer: int) -> tuple[int, int, int]:
    """Return the edges of both up to their LCS, and its depth."""
    above_truth, above_answer = (hierarchy.taxonomy.ancestors(hierarchy.wnids[n]) for n in (truth, answer))
    lcs = min(
        above_truth.keys() & above_answer.keys(),
        key=lambda wnid: (-hierarchy.depths[hierarchy.node_of[wnid]], wnid),
    )
    depth = int(hierarchy.depths[hierarchy.node_of[lcs]])
    return above_truth[lcs], above_answer[lcs], depth


def balanced_means(values: Floats, strata: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> Floats:
    """Return the unweighted mean over strata of the mean of each: true nodes weigh the same.

    Parameters
    ----------
    values : (n, m). strata : (n,) the stratum of each row.
    weights : (r, n) how often each row counts, for r replicates; by default once. NaN is left out, and so is
        a stratum without a weight.

    Returns
    -------
    (r, m); (1, m) without weights. NaN where nothing counts.
    """
    order = np.argsort(np.asarray(strata), kind="stable")
    starts = np.unique(np.asarray(strata)[order], return_index=True)[1]
    counts = np.ones((1, len(order))) if weights is None else np.asarray(weights, np.float64)[:, order]
    means = np.full((len(counts), values.shape[1]), np.nan)
    for column, of_rows in enumerate(np.asarray(values, np.float64)[order].T):
        missing = np.isnan(of_rows)
        present = counts * ~missing
        total = np.add.reduceat(present * np.where(missing, 0, of_rows), starts, axis=1)
        number = np.add.reduceat(present, starts, axis=1)
        with np.errstate(invalid="ignore"):
            by_stratum = total / number
        covered = (number > 0).sum(axis=1)
        with np.errstate(invalid="ignore"):
            means[:, column] = np.nansum(by_stratum, axis=1) / covered
    return means
