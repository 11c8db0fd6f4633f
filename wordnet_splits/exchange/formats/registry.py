"""The one table of formats, and what a format is."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, cast

from wordnet_splits.base.errors import unknown

if TYPE_CHECKING:
    from wordnet_splits.exchange.entries import ImportTask, ListEntry
    from wordnet_splits.exchange.outgoing import Export


class ExchangeFormat(Protocol):
    """One way in which another project keeps a benchmark.

    Attributes
    ----------
    about : one clause: what is written.
    pictures : whether pictures are written, so that roots are needed.
    """

    about: str
    pictures: bool

    def write(self, export: Export, folder: Path) -> None:
        """Write what the benchmark holds into an empty folder."""

    def read(self, reading: ImportTask) -> Iterable[ListEntry]:
        """Yield what a file or folder of this format lists, in any order."""


FORMATS: Final = {
    "csv": "plain_csv:PlainCsv",
    "hub": "hub_parquet:Hub",
    "imagefolder": "image_folder:ImageFolderTree",
    "openood": "openood:OpenOOD",
    "openset-imagenet": "openset:OpensetImagenet",
    "pytorch-ood": "pytorch_ood:PytorchOOD",
    "webdataset": "webdataset:WebDataset",
}
"""Name -> module of this package, and class in it."""

ARCHIVES: Final = ("facets", "kim-archive")
"""What can only be read: authors' own archives, which say splits, roles and sources themselves."""


def format_names() -> tuple[str, ...]:
    """Return the names of the formats, sorted."""
    return tuple(sorted(FORMATS))


def get_format(name: str, *, also: Iterable[str] = ()) -> ExchangeFormat:
    """Return the format of that name; UnknownNameError, which names ``also`` others, where there is none."""
    if name not in FORMATS:
        raise unknown("format", name, [*FORMATS, *also])
    module, _, kind = FORMATS[name].partition(":")
    return cast(ExchangeFormat, getattr(import_module(f"{__package__}.{module}"), kind)())
