"""Settings of Sphinx for ``make docs``. The built pages load nothing from other servers."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

project = "wordnet-splits"
release = metadata.version(project)
html_title = f"{project} {release}"
language = "en"

extensions = ["myst_nb", "sphinx.ext.autodoc", "generating"]

myst_heading_anchors = 4
nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 300

default_role = "code"  # as our docstrings write names
autodoc_preserve_defaults = True
autodoc_type_aliases = {"Scores": "Scores"}

html_theme = "furo"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
