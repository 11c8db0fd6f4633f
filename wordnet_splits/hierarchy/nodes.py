"""The synsets at or above the classes of a classifier, which may answer for an image, and errors of answers.

A node covers the classes at or below it. Its posterior is the sum of their probabilities: every class counts
once, on a graph where a synset has several parents too, so a parent is never less probable than its child.
The information of a node is log2(K / classes covered): 0 bits at the root, log2(K) at a class.

The least common subsumer (LCS) of truth and answer is their common ancestor of greatest depth (ties to the
smaller wnid). Edges from the truth up to it are missing specificity, edges from the answer up to it are
wrong specificity: an answer above the truth has only the first, one below it only the second.

Reference: Wallin, Kahl and Hammarstrand. ProHOC: Probabilistic Hierarchical Out-of-Distribution
Classification via Multi-Depth Networks. CVPR 2025 (the balanced mean hierarchical distance).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from wordnet_splits.base.errors import DataError
from wordnet_splits.wordnet.taxonomy import Taxonomy

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ClassHierarchy:
    """The nodes above K classes, the most specific first: by information, then depth, then wnid.

    Attributes
    ----------
    taxonomy : the graph, or its projection to a tree.
    classes : the synsets of each class; a class with several synsets is below each synset.
    wnids : the nodes.
    covers : (nodes, K) whether a node covers a class.
    depths : (nodes,) longest chain of
        edges from the root.
    """

    taxonomy: Taxonomy
    classes: tuple[tuple[str, ...], ...]
    wnids: tuple[str, ...]
    covers: Flags
    depths: Ints

    @classmethod
    def of(cls, classes: Iterable[Sequence[str]], taxonomy: Taxonomy | None = None) -> ClassHierarchy:
        """Return the hierarchy of classes, each given by its synsets."""
        taxonomy = Taxonomy.embedded() if taxonomy is None else taxonomy
        synsets = tuple(tuple(wnids) for wnids in classes)
        if len(synsets) < 2:
            raise DataError(f"a hierarchy needs at least 2 classes, got {len(synsets)}")
        column_of: dict[str, set[int]] = {}
        for column, wnids in enumerate(synsets):
            if not wnids:
                raise DataError(f"every class must have a synset, class {column} has none", hint="map it")
            for wnid in wnids:
                for ancestor in taxonomy.ancestors(wnid):
                    column_of.setdefault(ancestor, set()).add(column)
        depths = {wnid: taxonomy.max_depth(wnid) for wnid in column_of}
        order = sorted(column_of, key=lambda wnid: (len(column_of[wnid]), -depths[wnid], wnid))
        covers = np.zeros((len(order), len(synsets)), dtype=bool)
        for row, wnid in enumerate(order):
            covers[row, list(column_of[wnid])] = True
        if not covers[-1].all():
            raise DataError("the classes have no common hypernym", where=taxonomy.version)
        return cls(taxonomy, synsets, tuple(order), covers, np.array([depths[wnid] for wnid in order]))

    def __len__(self) -> int:
        return len(self.wnids)

    @cached_property
    def node_of(self) -> dict[str, int]:
        """Wnid -> node."""
        return {wnid: node for node, wnid in enumerate(self.wnids)}

    @property
    def root(self) -> int:
        """The node above all others, the last."""
        return len(self) - 1

    @cached_property
    def information(self) -> Floats:
        """The information (nodes,) of an answer, in bits."""
        return np.asarray(np.log2(self.covers.shape[1] / self.covers.sum(axis=1)))

    @cached_property
    def inner(self) -> Flags:
        """Whether a node (nodes,) is not a class itself: the answers for an image outside all classes."""
        leaves = {wnid for wnids in self.classes for wnid in wnids}
        return np.array([wnid not in leaves for wnid in self.wnids])

    @cached_property
    def leaves(self) -> Ints:
        """The node (K,) of each class; of a class of several synsets the deepest."""
        return np.array([self.truth(wnids) for wnids in self.classes])

    @cached_property
    def _cover_sets(self) -> tuple[Floats, Ints]:
        """The distinct rows of ``covers``, as columns, and the column of each node."""
        rows, row_of_node = np.unique(self.covers, axis=0, return_inverse=True)
        return rows.T.astype(np.float64), np.asarray(row_of_node).reshape(-1)

    def posteriors(self, probabilities: npt.ArrayLike) -> Floats:
        """Return the posterior (n, nodes) of every node for probabilities (n, K) of the classes."""
        values = self.checked(probabilities)
        sets, set_of_node = self._cover_sets
        posteriors = np.minimum(values @ sets, 1.0)
        posteriors[:, sets.all(axis=0)] = 1.0
        return np.asarray(posteriors[:, set_of_node])

    def checked(self, probabilities: npt.ArrayLike) -> Floats:
        """Return probabilities as float64 (n, K); DataError as of `posteriors`."""
        values = np.asarray(probabilities, dtype=np.float64)
        if values.ndim != 2 or values.shape[1] != len(self.classes):
            raise DataError(f"probabilities must have shape (n, {len(self.classes)}), got {values.shape}")
        if not (np.isfinite(values).all() and (values >= 0).all() and np.allclose(values.sum(axis=1), 1)):
            raise DataError("rows of probabilities must be at least 0 and sum to 1")
        return values

    def truth(self, wnids: Sequence[str]) -> int:
        """Return the true node of an image of a class with these synsets.

        That is the deepest synset at or above the class that is at or above one of the K classes, too (ties
        to the smaller wnid): a class of the K itself, else the deepest ancestor shared with them. A class
        without a synset shares only the root.
        """
        shared = {a for wnid in wnids if wnid in self.taxonomy for a in self.taxonomy.ancestors(wnid)}
        nodes = [self.node_of[wnid] for wnid in shared if wnid in self.node_of]
        return min(nodes, key=lambda node: (-self.depths[node], self.wnids[node]), default=self.root)

    def name(self, node: int) -> str:
        """Return the first word of a node, with spaces."""
        return self.taxonomy.lemmas(self.wnids[node])[0].replace("_", " ")

    def path(self, node: int) -> list[int]:
        """Return a shortest chain of nodes from the root down to ``node``."""
        chain = self.taxonomy.path_up(self.wnids[node], self.wnids[self.root])
        return [self.node_of[wnid] for wnid in reversed(chain)]


@dataclass(frozen=True, eq=False)
class AnswerErrors:
    """The errors of n answers.

    Attributes
    ----------
    under : (n,) edges from the truth up to the LCS.
    over : (n,) edges from the answer up to the LCS.
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
    """Return the errors of answers (n,) for images whose true nodes are ``truth`` (n,)."""
    nodes = [np.asarray(values, np.int64) for values in (truth, answers)]
    if nodes[0].ndim != 1 or nodes[0].shape != nodes[1].shape:
        raise DataError(f"truth and answers must have shape (n,), got {nodes[0].shape} and {nodes[1].shape}")
    if any(((values < 0) | (values >= len(hierarchy))).any() for values in nodes):
        raise DataError(f"truth and answers must be nodes 0 to {len(hierarchy) - 1}")
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
    values : (n, m).
    strata : (n,) the stratum of each row.
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
