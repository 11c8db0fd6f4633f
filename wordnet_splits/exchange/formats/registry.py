"""The registry of formats, and their protocol."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, cast

from wordnet_splits.base.errors import unknown

if TYPE_CHECKING:
    from wordnet_splits.exchange.entries import ListEntry
    from wordnet_splits.exchange.tasks import ExportTask, ImportTask


class ExchangeFormat(Protocol):
    """Format of another project.

    Attributes
    ----------
    about : one clause about what is written.
    pictures : whether pictures are written, so that roots are needed.
    """

    about: str
    pictures: bool

    def write(self, task: ExportTask, folder: Path) -> None:
        """Write the benchmark into an empty folder."""

    def read(self, task: ImportTask) -> Iterable[ListEntry]:
        """Yield the entries of a file or folder, in any order."""


FORMATS: Final = {
    "csv": "plain_csv:PlainCsv",
    "hub": "hub:Hub",
    "imagefolder": "image_folder:ImageFolderTree",
    "openood": "path_lists:OpenOOD",
    "openset-imagenet": "path_lists:OpensetImagenet",
    "pytorch-ood": "pytorch_ood:PytorchOOD",
    "webdataset": "webdataset:WebDataset",
}
"""Name -> module of this package and class in it."""

PATH_LISTS: Final = tuple(name for name, kind in FORMATS.items() if kind.startswith("path_lists:"))
"""Formats that list paths of pictures."""

ARCHIVE: Final = "kim-archive"
"""The archives of Kim et al., which can only be read, and have splits, roles and sources of their own."""


def format_names() -> tuple[str, ...]:
    """Return the names of the formats, sorted."""
    return tuple(sorted(FORMATS))


def get_format(name: str, *, also: Iterable[str] = ()) -> ExchangeFormat:
    """Return a format; UnknownNameError, which lists ``also`` other names, if there is none of that name."""
    if name not in FORMATS:
        raise unknown("format", name, [*FORMATS, *also])
    module, _, kind = FORMATS[name].partition(":")
    return cast(ExchangeFormat, getattr(import_module(f"{__package__}.{module}"), kind)())
