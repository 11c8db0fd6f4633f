"""What tells that the files of a root are not those that were read before: their sizes and times.

Reading every file again would take as long as the first time, so an image whose digest is not known
beforehand is taken for the same while the file that holds it has the same size and the same time of change.
Only the layout knows which file that is; here it is one that bears the image's name, or else any file
that is not a picture (an archive, a database, a list of labels), so that at most too much is done again.
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

from wordnet_splits.sources.pixels import EXTENSIONS

_BATCH: Final = 65_536
_PICTURES: Final = sorted(EXTENSIONS)

Stamps = npt.NDArray[np.uint64]


def stamps(root: Path, image_ids: pa.Array) -> Stamps:
    """Return a number for each image, (n,) uint64, that changes when the file that holds it does."""
    names = pc.replace_substring_regex(image_ids, "^.*/", "")
    known = pc.unique(names)
    found = np.zeros(len(known), np.uint64)
    others = np.zeros(1, np.uint64)
    files = _files(str(root))
    while batch := list(islice(files, _BATCH)):
        file_names, numbers = (list(column) for column in zip(*batch, strict=True))
        column, values = pa.array(file_names, pa.string()), np.array(numbers, np.uint64)
        stems = pc.replace_substring_regex(column, r"(.)\.[^.]*$", r"\1")
        rows = pc.coalesce(*(pc.index_in(c, value_set=known) for c in (stems, column)))
        rows = pc.fill_null(rows, -1).to_numpy()
        extensions = pc.utf8_lower(pc.replace_substring_regex(column, r"^.*\.", ""))
        pictures = pc.is_in(extensions, value_set=pa.array(_PICTURES)).to_numpy(zero_copy_only=False)
        named = pictures & (rows >= 0)
        np.add.at(found, rows[named], values[named])  # modulo 2 ** 64, in any order
        others += values[~pictures].sum(dtype=np.uint64)
    return np.asarray(found[pc.index_in(names, value_set=known).to_numpy()] + others, np.uint64)


def _files(root: str) -> Iterator[tuple[str, int]]:
    """Yield name and number of every file below a folder; links are not followed, their targets count."""
    folders = [root]
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(folder) as scanned:
                entries = [entry for entry in scanned if not entry.name.startswith(".")]
        except OSError:  # reading will say what is wrong with it
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
                continue
            try:
                link = Path(entry.path).readlink() if entry.is_symlink() else ""
                found = entry.stat()
            except OSError:
                continue
            text = f"{entry.path[len(root) :]}\0{link}\0{found.st_size}\0{found.st_mtime_ns}"
            digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
            yield entry.name.encode("utf-8", "backslashreplace").decode(), int.from_bytes(digest)
