"""The map of the packages: rooms with their imports, and the three ways through the code."""

from __future__ import annotations

import ast
import importlib
import tomllib
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import grimp

from generating.markdown import sections, spoken, table

REPOSITORY = Path(__file__).resolve().parents[2]
WAYS: dict[str, tuple[tuple[str, str], ...]] = {
    "build": (
        ("recipe", "wordnet_splits.benchmark.recipe:load_recipe"),
        ("roles", "wordnet_splits.benchmark.construct.classes:assign_classes"),
        ("images", "wordnet_splits.benchmark.construct.selection:select_images"),
        ("frozen images", "wordnet_splits.benchmark.construct.run:use_frozen_images"),
        ("pixels", "wordnet_splits.benchmark.construct.digesting:read_pixels"),
        ("tables", "wordnet_splits.benchmark.construct.assemble:assemble"),
        ("folder", "wordnet_splits.benchmark.manifest:write_manifest"),
    ),
    "read": (
        ("root", "wordnet_splits.datasets.sources.roots:declare_roots"),
        ("layout", "wordnet_splits.datasets.sources:open_source"),
        ("rows", "wordnet_splits.datasets.sources.source:Source.scan"),
        ("bytes", "wordnet_splits.datasets.sources.source:Source.read"),
        ("RGB", "wordnet_splits.datasets.sources.source:Source.decode"),
        ("view", "fix_resize.resize:apply"),
        ("item", "loaders.dataset:UnknownDetectionSet"),
    ),
    "evaluate": (
        ("models", "loaders.harness:load_model"),
        ("activations", "loaders.harness.extraction.extractor:Extractor"),
        ("fitted detectors", "loaders.harness.evaluation.scoring:fit"),
        ("scores", "loaders.harness.results.scores:score_table"),
        ("values", "loaders.harness.results.rows_from_scores:compute_rows"),
        ("results", "loaders.harness.results.results:Results"),
    ),
}
"""Title -> the steps of a way: the result of each, and the function or class that makes it."""
ROW, WIDTH, BOX = 52, 860, 130


def lines(package: str) -> Iterator[str]:
    """Yield the floors of a package and its rooms, each with the rooms that it imports."""
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    contracts: list[dict[str, Any]] = settings["contracts"]
    layers = next(contract for contract in contracts if contract.get("containers") == [package])["layers"]
    extensions = {
        name
        for contract in contracts
        if contract["type"] == "independence"
        for name in contract["modules"]
        if name.rpartition(".")[0] == package
    }
    graph = grimp.build_graph(package.partition(".")[0], cache_dir=None)
    rooms = [name.strip() for floor in layers for name in floor.replace("|", ":").split(":")]
    imports = imported_rooms(graph, package, rooms)
    kinds = {name: "extension" if f"{package}.{name}" in extensions else "core" for name in rooms}
    rows = [
        (
            f"`{name}`",
            *([kinds[name]] if extensions else []),
            summary(f"{package}.{name}"),
            ", ".join(imports[name]),
        )
        for name in rooms
    ]
    rooms_title = ("room", *(["part"] if extensions else []), "content", "imports")
    yield from table(rooms_title, rows)


def imported_rooms(graph: grimp.ImportGraph, package: str, rooms: list[str]) -> dict[str, list[str]]:
    """Return room -> the other rooms of its package that its modules import, from the top floor down."""
    found: dict[str, set[str]] = {name: set() for name in rooms}
    for name in rooms:
        room = f"{package}.{name}"
        for module in (room, *graph.find_descendants(room)):
            imported = graph.find_modules_directly_imported_by(module)
            inside = (
                other.removeprefix(f"{package}.") for other in imported if other.startswith(f"{package}.")
            )
            found[name] |= {other.partition(".")[0] for other in inside}
    return {name: [other for other in rooms if other in found[name] - {name}] for name in rooms}


def summary(module: str) -> str:
    """Return the first sentence of a module's docstring, without importing it."""
    path = REPOSITORY.joinpath(*module.split("."))
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    text = ast.get_docstring(ast.parse(source.read_text("utf-8"))) or ""
    return spoken(text.partition("\n\n")[0]).rstrip(".")


def step(name: str) -> tuple[str, str]:
    """Return a step's module path and the summary of its docstring."""
    module, _, names = name.partition(":")
    found: Any = importlib.import_module(module)
    for part in names.split("."):
        found = getattr(found, part)
    return f"{module}.{names}", " ".join(sections(found)[""].partition("\n\n")[0].split())


def picture(way: str) -> str:
    """Return the SVG of a way: a row for each step, its result in a box, then its function."""
    parts = []
    for number, (result, name) in enumerate(WAYS[way]):
        y = number * ROW + 8
        path, text = step(name)
        parts += [
            f'<rect x="8" y="{y}" width="{BOX}" height="32" rx="6"/>',
            f'<text x="{8 + BOX // 2}" y="{y + 21}" class="result">{escape(result)}</text>',
            f'<text x="{BOX + 24}" y="{y + 13}" class="name">{escape(path)}</text>',
            f'<text x="{BOX + 24}" y="{y + 30}" class="text">{escape(text.replace("`", ""))}</text>',
        ]
        if number:
            parts.append(f'<path d="M{8 + BOX // 2} {y - ROW + 32}V{y - 2}" marker-end="url(#head)"/>')
    height = len(WAYS[way]) * ROW
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img"><title>{way}</title>'
    marker = '<defs><marker id="head" markerWidth="8" markerHeight="8" refX="6" refY="4" orient="auto">'
    marker += '<path d="M0 0L8 4L0 8z" class="tip"/></marker></defs>'
    style = "<style>text{font:13px sans-serif}.result{text-anchor:middle;font-weight:bold}"
    style += ".name{font:12px monospace;fill:#0072b2}.text{fill:#333}rect{fill:#eef4fa;stroke:#0072b2}"
    style += "path{stroke:#555;fill:none}.tip{fill:#555;stroke:none}</style>"
    ground = f'<rect width="{WIDTH}" height="{height}" style="fill:#fff;stroke:none"/>'
    return "\n".join([head, marker, style, ground, *parts, "</svg>", ""])
