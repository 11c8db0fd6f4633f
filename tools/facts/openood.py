"""OpenOOD's image lists: split, class and image id from a path in OpenOOD's own numbering."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

# Folder of images_classic that OpenOOD renumbered -> how its files lie below a split.
RENUMBERED = {
    "cifar10": r"(?P<class>[\w-]+)/\d{4}\.png",
    "cifar100": r"(?P<class>[\w-]+)/\d{4}\.png",
    "mnist": r"(?P<class>\d)_\d+\.jpg",
    "svhn": r"\d{6}_(?P<class>\d)\.jpg",
    "tin597": r"(?P<class>n\d{8})/images/(?P=class)_\d+\.JPEG",
}


def openood_file(path: str) -> tuple[str, str, str]:
    """Return (split, class_id, image_id) of a path in a dataset that OpenOOD renumbered.

    >>> openood_file("cifar10/test/airplane/0298.png")
    ('test', 'airplane', 'test/airplane/0298')
    """
    folder, split, file = path.split("/", 2)
    match = re.fullmatch(RENUMBERED[folder], file)
    if match is None:
        raise ValueError(f"{path} is not named as OpenOOD names its {folder}")
    if folder == "tin597":  # the name alone is unique
        return split, match["class"], PurePosixPath(path).stem
    return split, match["class"], f"{split}/{file.rpartition('.')[0]}"
