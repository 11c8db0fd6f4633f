"""Write the generated parts of the pages: ``python -m generating`` in ``docs`` (`make docs`).

A page marks a part by two comments, the first with a key of `PARTS` and its arguments::

    <!-- generated: program fix-resize -->
    <!-- end -->
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from generating import architecture, metrics, notebooks, power, programs, python, recipe, tree

DOCS = Path(__file__).resolve().parents[1]
PARTS: dict[str, Callable[..., Iterator[str]]] = {
    "metrics": metrics.lines,
    "package": architecture.lines,
    "power": power.lines,
    "program": programs.lines,
    "python": python.lines,
    "recipe": recipe.lines,
}
MARKED = re.compile(
    r"^(<!-- generated: ([a-z]+)((?: \S+)*) -->\n).*?^(<!-- end -->)$", re.MULTILINE | re.DOTALL
)


def generated() -> Iterator[tuple[Path, str]]:
    """Yield the path and text of every page and picture that has a generated part."""
    for path in sorted(DOCS.rglob("*.md")):
        text = path.read_text("utf-8")
        if MARKED.search(text):
            yield path, MARKED.sub(fill, text)
    yield DOCS / "tree.svg", tree.picture()
    for way in architecture.WAYS:
        yield DOCS / "ways" / f"{way}.svg", architecture.picture(way)


def fill(found: re.Match[str]) -> str:
    """Return a marked part with its present text."""
    begin, part, arguments, end = found.groups()
    text = re.sub("\n{3,}", "\n\n", "\n".join(PARTS[part](*arguments.split()))).strip()
    return f"{begin}\n{text}\n{end}"


def main() -> int:
    """Write what has changed."""
    for path, text in generated():
        path.parent.mkdir(exist_ok=True)
        if not path.is_file() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")
    for path in sorted((DOCS / "notebooks").glob("*.ipynb")):
        notebooks.run(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
