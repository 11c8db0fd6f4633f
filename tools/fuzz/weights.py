"""Reads files of weights, as a small program: ``weights FILE...``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from loaders.harness.models.weights import read_state
from wordnet_splits.base.names import printable

app = typer.Typer(add_completion=False)


@app.command()
def weights(paths: Annotated[list[Path], typer.Argument()]) -> int:
    """Read the tensors in each file and say their shapes."""
    for path in paths:
        for name, tensor in read_state(path).items():
            print(printable(name), tuple(tensor.shape))
    return 0
