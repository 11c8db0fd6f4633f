"""The synsets at or above the classes of a classifier, which may answer for an image.

A node covers the classes at or below it. Its posterior is the sum of their probabilities: every class counts
once, on a graph where a synset has several parents too, so a parent is never less probable than its child.
The information of a node is log2(K / classes covered): 0 bits at the root, log2(K) at a class.
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
    wnids : the nodes. covers : (nodes, K) whether a node covers a class. depths : (nodes,) longest chain of
        edges from the root.
    """

    taxonomy: Taxonomy
    classes: tuple[tuple[str, ...], ...]
    wnids: tuple[str, ...]
    covers: Flags
    depths: Ints

    @classmethod
    def of(cls, classes: Iterable[Sequence[str]], taxonomy: Taxonomy | None = None) -> ClassHierarchy:
        """Return the hierarchy of classes, each given by its synsets.

        Raises
        ------
        DataError : fewer than two classes, a class without a synset, or no node that covers all classes.
        TaxonomyError : a synset is not in the taxonomy.
        """
        taxonomy = Taxonomy.embedded() if taxonomy is None else taxonomy
        synsets = tuple(tuple(wnids) for wnids in classes)
        if len(synsets) < 2:
            raise DataError(f"a hierarchy of {len(synsets)} classes has nothing to decide")
        column_of: dict[str, set[int]] = {}
        for column, wnids in enumerate(synsets):
            if not wnids:
                raise DataError(f"class {column} has no synset, so it is at no node", hint="map it")
            for wnid in wnids:
                for ancestor in taxonomy.ancestors(wnid):
                    column_of.setdefault(ancestor, set()).add(column)
        depths = {wnid: taxonomy.max_depth(wnid) for wnid in column_of}
        order = sorted(column_of, key=lambda wnid: (len(column_of[wnid]), -depths[wnid], wnid))
        covers = np.zeros((len(order), len(synsets)), dtype=bool)
        for row, wnid in enumerate(order):
            covers[row, list(column_of[wnid])] = True
        if not covers[-1].all():
            raise DataError("no synset lies above all classes", where=taxonomy.version)
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
        """Return the posterior (n, nodes) of every node for probabilities (n, K) of the classes.

        Raises
        ------
        DataError : another number of columns, or rows that are not distributions.
        """
        values = self.checked(probabilities)
        sets, set_of_node = self._cover_sets
        posteriors = np.minimum(values @ sets, 1.0)
        posteriors[:, sets.all(axis=0)] = 1.0
        return np.asarray(posteriors[:, set_of_node])

    def checked(self, probabilities: npt.ArrayLike) -> Floats:
        """Return probabilities as float64 (n, K); DataError as of `posteriors`."""
        values = np.asarray(probabilities, dtype=np.float64)
        if values.ndim != 2 or values.shape[1] != len(self.classes):
            raise DataError(f"probabilities of shape {values.shape} for {len(self.classes)} classes")
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
