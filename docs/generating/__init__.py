"""Reference pages written from the code while Sphinx builds them.

A directive marks the place; its arguments are a key of `PARTS` and the arguments of that part::

    ```{generated} program fix-resize
    ```
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from generating import metrics, programs, python, recipe

PARTS: dict[str, Callable[..., Iterator[str]]] = {
    "metrics": metrics.lines,
    "program": programs.lines,
    "python": python.lines,
    "recipe": recipe.lines,
}


class Generated(SphinxDirective):
    """The lines of a part in place of the directive, headings included."""

    required_arguments = 1
    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the nodes of the part's Markdown."""
        part, *given = self.arguments
        text = "\n".join(PARTS[part](*given))
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive, and the reading of docstrings."""
    python.import_all()
    app.add_directive("generated", Generated)
    app.connect("autodoc-process-docstring", python.read_sections)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
