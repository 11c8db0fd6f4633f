"""Custom hierarchies of 100,000 nodes: loading, and the distances of 1,000 classes, against networkx."""

from __future__ import annotations

import csv
import tempfile
from pathlib import Path
from random import Random

import networkx as nx
import numpy as np

from tools.benchmarks.rows import Row, compare, fastest
from wordnet_splits.wordnet.similarity import similarity_matrix
from wordnet_splits.wordnet.taxonomy import Taxonomy

NODES, CLASSES, SECOND_PARENTS = 100_000, 1_000, 2_000
PEER_CLASSES = 100
"""Classes of which networkx compares all pairs; its time is that of a pair."""


def run() -> list[Row]:
    """Measure, and check that both sides read the same graph and compute the same distances."""
    with tempfile.TemporaryDirectory() as folder:
        tree, nodes = _write(Path(folder))
        load = compare(lambda: Taxonomy.from_files(tree, nodes), lambda: _networkx(tree, nodes), rounds=5)
        taxonomy, (graph, _) = Taxonomy.from_files(tree, nodes), _networkx(tree, nodes)
    if len(taxonomy) != len(graph) or len(taxonomy.graph.parent_indices) != graph.number_of_edges():
        raise AssertionError("the graphs differ")
    classes = Random(1).sample(taxonomy.wnids, CLASSES)
    ours = fastest(lambda: similarity_matrix("distance", classes, taxonomy=taxonomy), 5)
    mean = fastest(lambda: similarity_matrix("mean", classes, taxonomy=taxonomy), 5)
    some = classes[:PEER_CLASSES]
    if not np.array_equal(similarity_matrix("distance", some, taxonomy=taxonomy), _distances(graph, some)):
        raise AssertionError("the distances differ")
    peer = fastest(lambda: _distances(graph, some), 2) * (CLASSES / PEER_CLASSES) ** 2
    return [
        Row(
            f"load a custom hierarchy of {NODES:,} nodes, edges and names",
            f"{load.ours:.2f} s",
            f"networkx {load.peer:.2f} s",
            load.ratio,
            "<= 1 s",
            load.ours <= 1,
        ),
        Row(
            f"distances of {CLASSES:,} x {CLASSES:,} of its nodes; mean",
            f"{ours * 1e3:.0f} ms; {mean * 1e3:.0f} ms",
            f"networkx {peer:.1f} s (of {PEER_CLASSES} x {PEER_CLASSES})",
            peer / ours,
            "<= 50 ms",
            max(ours, mean) <= 0.05,
        ),
    ]


def _write(folder: Path) -> tuple[Path, Path]:
    """Write a random graph with one root: every node has a parent before it, some have a second one."""
    random = Random(0)
    edges = {(node, random.randrange(node)) for node in range(1, NODES)}
    edges |= {(node, random.randrange(node)) for node in random.sample(range(2, NODES), SECOND_PARENTS)}
    names = (f"n{n}\titem {n}|product number {n}\tthe item of the number {n}\n" for n in range(NODES))
    tree, nodes = folder / "tree.tsv", folder / "nodes.tsv"
    tree.write_text("child\tparent\n" + "".join(f"n{child}\tn{parent}\n" for child, parent in edges))
    nodes.write_text("node\tnames\tgloss\n" + "".join(names))
    return tree, nodes


def _networkx(tree: Path, nodes: Path) -> tuple[nx.DiGraph, dict[str, list[str]]]:
    """Read the same with networkx and csv: edges, their acyclicity, and the names of each node."""
    with tree.open() as file:
        next(file)
        graph = nx.parse_edgelist(file, delimiter="\t", create_using=nx.DiGraph)
    if not nx.is_directed_acyclic_graph(graph):
        raise AssertionError("a cycle")
    with nodes.open(newline="") as file:
        names = {row["node"]: row["names"].split("|") for row in csv.DictReader(file, delimiter="\t")}
    return graph, names


def _distances(graph: nx.DiGraph, classes: list[str]) -> np.ndarray:
    """Return the fewest edges of each pair up to a common ancestor and down."""
    above = [nx.single_source_shortest_path_length(graph, name) for name in classes]
    return np.array([[min(up[a] + down[a] for a in up if a in down) for down in above] for up in above])
