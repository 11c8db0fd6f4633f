"""Notebooks with their outputs."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

TIMEOUT = 300
"""Seconds that a cell may take."""


def run(path: Path) -> None:
    """Run every cell in an empty folder, and keep the outputs in the file.

    Raises
    ------
    nbclient.exceptions.CellExecutionError : a cell failed; the file is unchanged.
    """
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(
            notebook,
            timeout=TIMEOUT,
            resources={"metadata": {"path": folder}},
            record_timing=False,
            env=os.environ | {"PYTHONPATH": str(path.resolve().parents[2])},
        )
        client.execute()
    for cell in notebook.cells:  # progress is no result
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    notebook.metadata.pop("language_info", None)
    nbformat.write(notebook, path)
