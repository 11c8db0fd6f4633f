"""A small benchmark of photographs of different sizes: a root as ImageNet's, and its local build."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from PIL import Image

from wordnet_splits.benchmark.construct import build_benchmark

TENCH, GOLDFISH, SHARK = "n01440764", "n01443537", "n01484850"
COUNT = 4  # of each class
RECIPE = f"""
schema = 1
name = "photographs"
draw = "photographs"
[[group]]
name = "known"
role = "id"
source = "imagenet1k"
classes = {{ listed = ["{TENCH}", "{GOLDFISH}"] }}
images = {{ test = {{ from = "train", all = true }} }}
[[group]]
name = "near"
role = "near"
source = "imagenet1k"
view = "fix"
classes = {{ listed = ["{SHARK}"] }}
images = {{ test = {{ from = "train", all = true }} }}
[[group]]
name = "noise"
role = "far"
source = "gaussian"
noise = {{ shape = [32, 32, 3], seed = 0 }}
classes = {{ rest = true }}
images = {{ test = {{ generate = 5 }} }}
"""


def jpeg(seed: int, size: tuple[int, int]) -> bytes:
    """A smooth coloured JPEG of (width, height)."""
    coarse = np.random.default_rng(seed).integers(0, 256, (6, 7, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(coarse).resize(size).save(file, "JPEG")
    return file.getvalue()


def image_file(root: Path, class_id: str, number: int) -> Path:
    """Where the root keeps an image, whose id is the stem; Tiny ImageNet's numbers end at 499."""
    return root / "train" / class_id / f"{class_id}_{5000 + number}.JPEG"


def write_root(root: Path, size: tuple[int, int] | None = None) -> Path:
    """Write the photographs, all of one size or each of its own."""
    for n, class_id in enumerate((TENCH, GOLDFISH, SHARK)):
        for number in range(COUNT):
            path = image_file(root, class_id, number)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(jpeg(n * COUNT + number, size or (310 + 10 * number, 300 + n)))
    return root


def build_photographs(root: Path, out: Path) -> Path:
    """Build the benchmark from what the root holds, and return its folder."""
    out.mkdir(parents=True, exist_ok=True)
    recipe = out / "photographs.toml"
    recipe.write_text(RECIPE, encoding="utf-8")
    folder = build_benchmark(recipe, roots={"imagenet1k": root}, out=out, local=True).folder
    assert folder is not None
    return folder
