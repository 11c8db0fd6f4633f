"""Settings of Sphinx for ``make docs``. The built pages load nothing from other servers."""

from __future__ import annotations

from importlib import metadata

project = "wordnet-splits"
release = metadata.version(project)
html_title = f"{project} {release}"
language = "en"

extensions = ["myst_nb"]

myst_heading_anchors = 4
nb_execution_mode = "off"  # the notebooks keep their outputs

html_theme = "furo"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
