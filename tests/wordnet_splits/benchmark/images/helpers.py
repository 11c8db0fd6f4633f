"""What the tests of packed stores make and damage."""

from __future__ import annotations

from pathlib import Path

from wordnet_splits.benchmark.construct import build_benchmark


def build_many(folder: Path) -> Path:
    """A benchmark of two groups of noise, each of several chunks of work."""
    text = 'schema = 1\nname = "many"\ndraw = "many"\n'
    for source, role, count in (("gaussian", "far", 150), ("uniform", "id", 200)):
        text += f'[[group]]\nname = "{source}"\nrole = "{role}"\nsource = "{source}"\n'
        text += "noise = { shape = [4, 4, 3], seed = 0 }\nclasses = { rest = true }\n"
        text += f"images = {{ test = {{ generate = {count} }} }}\n"
    folder.mkdir(parents=True, exist_ok=True)
    recipe = folder / "many.toml"
    recipe.write_text(text, encoding="utf-8")
    made = build_benchmark(recipe, out=folder / "build").folder
    assert made is not None
    return made


def flip(path: Path, offset: int) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        byte = file.read(1)
        file.seek(offset)
        file.write(bytes([byte[0] ^ 1]))
