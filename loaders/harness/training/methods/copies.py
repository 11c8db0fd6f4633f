"""Training on copies of the images made by other programs: StyleAugment, DeepAugment.

References
----------
Geirhos, Rubisch, Michaelis, Bethge, Wichmann and Brendel, ImageNet-trained CNNs Are Biased towards Texture;
Increasing Shape Bias Improves Accuracy and Robustness, ICLR 2019.
Hendrycks et al., The Many Faces of Robustness, ICCV 2021, section 4 (DeepAugment).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
from PIL import Image
from pydantic import Field
from torch import Tensor

from fix_resize.decode import decode_bytes
from wordnet_splits.base.errors import DataError
from wordnet_splits.base.untrusted import path_below, read_image

from ...data.parameters import parameters
from ...models.transforms import Normalise
from .interface import Batch, Data, Method, State, Terms, cross_entropy
from .network import Network
from .registry import register_method

SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp")
HINT = (
    "it has a folder of images for each ID class. StyleAugment: python3 stylize.py --content-dir IMAGES"
    " --style-dir PAINTINGS --output-dir FOLDER (github.com/bethgelab/stylize-datasets). DeepAugment:"
    " CAE_distort_imagenet.py and EDSR_distort_imagenet.py (github.com/hendrycks/imagenet-r)"
)


@register_method("augmented-copies")
@parameters
class AugmentedCopies(Method):
    """Cross-entropy of images, a share replaced by copies from a folder with images of the same class.

    With ``share`` 0.5, there are as many copies as images, as in training on their union. Copies are resized
    to the images' size and mirrored at random.

    Attributes
    ----------
    folder : FOLDER/CLASS NAME/FILE, a folder for each ID class.
    """

    folder: str = ""
    share: Annotated[float, Field(ge=0, le=1)] = 0.5

    def facts(self, data: Data) -> dict[str, Any]:
        """Return the classes and the normalisation; a folder without the classes is refused here."""
        list_copies(self.folder, data.classes)
        normalise = data.normalise
        return {"classes": list(data.classes), "mean": list(normalise.mean), "std": list(normalise.std)}

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        """Return the cross-entropy."""
        facts, (h, w), labels = model.facts, batch.images.shape[2:], batch.labels.cpu()
        pixels, counts = read_copies(self.folder, tuple(facts["classes"]), h, w)
        replaced, position, mirrored = torch.rand(3, len(batch), generator=state.generator)
        rows = counts.cumsum(0)[labels] - counts[labels] + (position * counts[labels]).long()
        copies = pixels[rows]
        copies = torch.where((mirrored < 0.5).view(-1, 1, 1, 1), copies.flip(3), copies)
        normalised = Normalise.of(facts["mean"], facts["std"])(copies.to(batch.images.device))
        mask = (replaced < self.share).to(batch.images.device).view(-1, 1, 1, 1)
        images = torch.where(mask, normalised, batch.images)
        return {"cross_entropy": cross_entropy(model.logits(images), batch.labels)}


def list_copies(folder: str, classes: Sequence[str]) -> list[list[Path]]:
    """Return the image files of each class, sorted by name.

    Raises
    ------
    DataError : no folder is given, or the folder of a class lacks images.
    """
    where = f"training method {AugmentedCopies.name!r}"
    if not folder:
        raise DataError(
            "it needs a folder of copies: augmented-copies[folder=FOLDER]", where=where, hint=HINT
        )
    files = []
    for name in classes:
        below = path_below(Path(folder).expanduser(), name)
        names = sorted(below.iterdir()) if below.is_dir() else []
        files.append([path for path in names if path.suffix.lower() in SUFFIXES])
        if not files[-1]:
            raise DataError(f"{folder} has no image of the ID class {name!r}", where=where, hint=HINT)
    return files


@lru_cache(maxsize=1)
def read_copies(folder: str, classes: tuple[str, ...], h: int, w: int) -> tuple[Tensor, Tensor]:
    """Return all copies (m, 3, h, w) uint8, class by class, and their number (K,) in each class."""
    files = list_copies(folder, classes)
    pixels = np.empty((sum(map(len, files)), h, w, 3), np.uint8)
    for row, path in enumerate(path for members in files for path in members):
        image = decode_bytes(read_image(path, path.parent.parent.resolve()), where=str(path))
        if image.size != (w, h):
            image = image.resize((w, h), Image.Resampling.BICUBIC)
        pixels[row] = np.asarray(image)
    return torch.from_numpy(pixels).permute(0, 3, 1, 2), torch.tensor([len(members) for members in files])
