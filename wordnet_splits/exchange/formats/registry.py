"""Formats of other projects by name, and their base class."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, TypeVar

from wordnet_splits.base.registry import Registry

if TYPE_CHECKING:
    from wordnet_splits.exchange.entries import ListEntry
    from wordnet_splits.exchange.tasks import ExportTask, ImportTask


class ExchangeFormat(ABC):
    """Format of another project.

    Attributes
    ----------
    about : one clause about the written files.
    pictures : whether images are written, so that roots are needed.
    paths : whether it lists paths of images.
    """

    about: ClassVar[str]
    pictures: ClassVar[bool] = False
    paths: ClassVar[bool] = False

    @abstractmethod
    def write(self, task: ExportTask, folder: Path) -> None:
        """Write the benchmark into an empty folder."""

    @abstractmethod
    def read(self, task: ImportTask) -> Iterable[ListEntry]:
        """Yield the entries of a file or folder, in any order."""


FormatClass = TypeVar("FormatClass", bound=type[ExchangeFormat])

FORMATS: Final = Registry[type[ExchangeFormat]]("format", str(__package__), "wordnet_splits.formats")

ARCHIVE: Final = "kim-archive"
"""The archives of Kim et al., which can only be read, and have splits, roles and sources of their own."""


def register_format(name: str) -> Callable[[FormatClass], FormatClass]:
    """Register the decorated class as the format ``name``."""
    return FORMATS.register(name)


def format_names() -> tuple[str, ...]:
    """Return the names of the formats, sorted."""
    return FORMATS.names()
