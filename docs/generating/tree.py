"""The figure of the first page.

The hoofed animals of unknown-imagenet in WordNet's tree, by role. Synsets with one branch are not drawn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

import wordnet_splits as ws

BENCHMARK, ROOT = "unknown-imagenet", "ungulate.n.01"
COLOURS = {"id": "#0072b2", "near": "#b34e00", "far": "#007a59", "external": "#6b6b6b"}
WORDS = {"id": "ID", "near": "near-OOD", "far": "far-OOD", "external": "external"}
STEP, LINE, MARGIN = 114, 24, 14


@dataclass
class Node:
    """A class, or a synset where two or more branches meet."""

    name: str
    role: str
    children: list[Node]

    @property
    def leaves(self) -> list[Node]:
        """The classes below, from top to bottom."""
        return [leaf for child in self.children for leaf in child.leaves] or [self]


def grow(tree: ws.Taxonomy, wnid: str, roles: dict[str, tuple[str, str]]) -> Node | None:
    """Return the part of the tree at and below a synset that leads to classes."""
    if wnid in roles:
        return Node(*roles[wnid], [])
    below = [node for child in sorted(tree.children(wnid)) if (node := grow(tree, child, roles))]
    if len(below) < 2:
        return below[0] if below else None
    return Node(tree.lemmas(wnid)[0].replace("_", " "), "", below)


def depth(node: Node) -> int:
    """Return the number of meeting points on the longest way down."""
    return 1 + max(map(depth, node.children)) if node.children else 0


def draw(node: Node, x: int, rows: Iterator[int], end: int) -> tuple[int, list[str]]:
    """Return the height of a node, and the SVG of its subtree."""
    if not node.children:
        y, colour = next(rows), COLOURS[node.role]
        name = f'<text x="{end + 14}" y="{y + 5}" fill="{colour}">{escape(node.name)}</text>'
        role = f'<text x="{end + 126}" y="{y + 5}" fill="{colour}" class="role">{WORDS[node.role]}</text>'
        return y, [f'<circle cx="{end}" cy="{y}" r="5" fill="{colour}"/>', name, role]
    drawn = [(child, *draw(child, x + STEP, rows, end)) for child in node.children]
    places = [y for _, y, _ in drawn]
    middle = (places[0] + places[-1]) // 2
    lines = [f'<path d="M{x} {places[0]}V{places[-1]}"/>']
    for child, y, parts in drawn:
        lines += parts if child.children else [f'<path d="M{x} {y}H{end}"/>', *parts]
    lines.append(f'<path d="M{x - STEP} {middle}H{x}"/>')
    lines.append(f'<text x="{x - 6}" y="{middle - 5}" class="synset">{escape(node.name)}</text>')
    return middle, lines


def picture() -> str:
    """Return the SVG."""
    rows = ws.load_manifest(BENCHMARK).classes.to_pylist()
    taken = [row for row in rows if row["role"] != "excluded" and row["own_wnid"]]
    roles = {row["own_wnid"]: (row["name"], row["role"]) for row in taken}
    tree = ws.Taxonomy.embedded().tree()
    root = grow(tree, tree.find(ROOT), roles)
    assert root is not None
    count, end = len(root.leaves), MARGIN + (depth(root) + 1) * STEP
    heights = iter(range(MARGIN + LINE // 2, MARGIN + count * LINE, LINE))
    _, parts = draw(root, MARGIN + STEP, heights, end)
    width, height = end + 210, 2 * MARGIN + count * LINE
    said = "; ".join(f"{leaf.name} {WORDS[leaf.role]}" for leaf in root.leaves)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img">'
    )
    title = f"<title>The hoofed animals of {BENCHMARK} in WordNet, by role</title><desc>{escape(said)}</desc>"
    style = (
        "<style>text{font:14px sans-serif}.role{font-size:12px}"
        ".synset{font-size:11px;fill:#555;text-anchor:end}path{fill:none;stroke:#999}</style>"
    )
    ground = f'<rect width="{width}" height="{height}" rx="8" fill="#fff"/>'
    return "\n".join([head, title, style, ground, *parts, "</svg>", ""])
