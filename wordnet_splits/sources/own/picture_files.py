"""Layouts whose pictures are files of their own: an image's place is a path below the root."""

from __future__ import annotations

from pathlib import Path

from wordnet_splits.base.untrusted import check_link, read_image
from wordnet_splits.sources.own.layout import Layout, Place


class PictureFiles(Layout):
    """A picture a file."""

    def read(self, place: Place) -> bytes:
        """Return a picture's bytes."""
        return read_image(self.root / str(place[0]), self.root)

    def file(self, place: Place) -> Path | None:
        """Return a picture's file, its links followed."""
        path = self.root / str(place[0])
        if path.is_symlink():
            check_link(path, self.root)
        return path.resolve(strict=True)
