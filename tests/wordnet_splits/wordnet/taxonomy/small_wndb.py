"""A WNDB database of two synsets."""

from __future__ import annotations

from pathlib import Path

SMALL = {
    "data.noun": (
        "  1 WordNet 9.9 Copyright nobody  \n"
        "00000010 03 n 01 entity 0 001 ~ 00000100 n 0000 | all there is  \n"
        "00000100 05 n 02 Dog 0 hound 1 003 @ 00000010 n 0000 @i 00000010 n 0000 + 00000200 v 0101 | barks\n"
    ),
    "index.noun": "dog n 1 1 @ 1 0 00000100  \nentity n 1 0 1 0 00000010  \nhound n 1 1 @ 1 0 00000100  \n",
    "noun.exc": "dogges dog\n",
}


def write_small_wndb(folder: Path, **changes: str) -> Path:
    """Write the files, some of them changed, and return the folder."""
    for name, text in {**SMALL, **changes}.items():
        (folder / name).write_text(text)
    return folder
