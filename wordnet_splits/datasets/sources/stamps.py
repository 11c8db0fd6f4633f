"""Stamps of images, from the sizes and times of files: they show that a root has changed since it was read.

Reading every file again would take as long as the first time, so an image whose digest is not known is
considered the same while its file has the same size and time of change. Only the layout can map an image to
its file; here an image depends on the file with its name, and on every file that is not an image (an
archive, a database, a list of labels), so that at worst too many images are read again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fix_resize.decode import EXTENSIONS

_BATCH: Final = 65_536
_PICTURES: Final = sorted(EXTENSIONS)

Stamps = npt.NDArray[np.uint64]


def stamps(root: Path, image_ids: pa.Array) -> Stamps:
    """Return a number for each image, (n,) uint64, that changes with its file."""
    names = pc.replace_substring_regex(image_ids, "^.*/", "")
    unique_names = pc.unique(names)
    picture_stamps = np.zeros(len(unique_names), np.uint64)
    other_stamps = np.zeros(1, np.uint64)
    files = _files(str(root))
    while batch := list(islice(files, _BATCH)):
        file_names, numbers = (list(column) for column in zip(*batch, strict=True))
        column, values = pa.array(file_names, pa.string()), np.array(numbers, np.uint64)
        stems = pc.replace_substring_regex(column, r"(.)\.[^.]*$", r"\1")
        rows = pc.coalesce(*(pc.index_in(c, value_set=unique_names) for c in (stems, column)))
        rows = pc.fill_null(rows, -1).to_numpy()
        extensions = pc.utf8_lower(pc.replace_substring_regex(column, r"^.*\.", ""))
        pictures = pc.is_in(extensions, value_set=pa.array(_PICTURES)).to_numpy(zero_copy_only=False)
        matched = pictures & (rows >= 0)
        np.add.at(picture_stamps, rows[matched], values[matched])  # modulo 2 ** 64, in any order
        other_stamps += values[~pictures].sum(dtype=np.uint64)
    rows = pc.index_in(names, value_set=unique_names).to_numpy()
    return np.asarray(picture_stamps[rows] + other_stamps, np.uint64)


def _files(root: str) -> Iterator[tuple[str, int]]:
    """Yield name and stamp of every file below a folder; links are not followed, but their targets count."""
    folders = [root]
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(folder) as scanned:
                entries = [entry for entry in scanned if not entry.name.startswith(".")]
        except OSError:  # reading raises the error
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
                continue
            try:
                link = Path(entry.path).readlink() if entry.is_symlink() else ""
                status = entry.stat()
            except OSError:
                continue
            text = f"{entry.path[len(root) :]}\0{link}\0{status.st_size}\0{status.st_mtime_ns}"
            digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
            yield entry.name.encode("utf-8", "backslashreplace").decode(), int.from_bytes(digest)
