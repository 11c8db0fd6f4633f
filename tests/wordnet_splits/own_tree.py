"""Digits in a hierarchy of their own, a graph with several parents, and a benchmark that it decides.

::

    sign
    |-- number
    |   |-- even         0 2 4 6 8
    |   |-- odd          1 3 5 7 9
    |   `-- small        0 1 2 3
    `-- mark
        `-- round        0 6 8 9
"""

from __future__ import annotations

from pathlib import Path

from tests.wordnet_splits.recipes import group
from wordnet_splits.benchmark.construct import build_benchmark

MEMBERS = {"even": "02468", "odd": "13579", "small": "0123", "round": "0689"}
PARENTS: dict[str, tuple[str, ...]] = {
    "number": ("sign",),
    "mark": ("sign",),
    "round": ("mark",),
    **dict.fromkeys(("even", "odd", "small"), ("number",)),
    **{c: tuple(p for p, members in MEMBERS.items() if c in members) for c in "0123456789"},
}
WORDS = ("zero|nought", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
NAMES = {str(number): names for number, names in enumerate(WORDS)}
NODES = {**{node: node for node in ("sign", "number", "mark", *MEMBERS)}, **NAMES}
"""Node -> its names, separated by a bar."""

KNOWN, NEAR, FAR = "024", "13689", "57"
"""The classes of each group by the rules below, read off the drawing above."""
TITLE, BENCHMARK = "numbers 2", "own-digits"
HEAD = f"""schema = 1
name = "{BENCHMARK}"
[hierarchy]
file = "tree.tsv"
name = "numbers"
version = "2"
[about]
licence = "CC-BY-4.0"
authors = [{{ name = "Ada Lovelace" }}]
"""
IMAGES = '{ train = { from = "all", per_class = 9 }, test = { from = "all", per_class = 20 } }'
TEST = '{ test = { from = "all", per_class = 20 } }'


def write_tree(folder: Path, *, nodes: bool = True) -> Path:
    """Write tree.tsv and, if asked for, nodes.tsv with names and glosses."""
    edges = (f"{child}\t{parent}\n" for child, parents in PARENTS.items() for parent in parents)
    (folder / "tree.tsv").write_text("child\tparent\n" + "".join(edges))
    if nodes:
        rows = (f"{node}\t{names}\tthe {names.split('|')[0]}\n" for node, names in NODES.items())
        (folder / "nodes.tsv").write_text("node\tnames\tgloss\n" + "".join(rows))
    return folder / "tree.tsv"


def write_own_recipe(folder: Path, near: str = '{ below_parent_of = "group:known" }') -> Path:
    groups = (
        group("known", "id", "digits", '{ listed = ["0", "2", "4"] }', IMAGES),
        group("near", "near", "digits", near, TEST),
        group("far", "far", "digits", "{ rest = true }", TEST),
    )
    path = folder / "own.toml"
    path.write_text(HEAD + "\n".join(groups))
    return path


def build_own(folder: Path) -> Path:
    """Return the folder of the benchmark, built below ``folder``."""
    write_tree(folder)
    build_benchmark(write_own_recipe(folder), out=folder / "build")
    return folder / "build" / BENCHMARK
