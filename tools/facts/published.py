"""Read a file of published facts: our ``#`` header has its origin, the rest is as published."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path


@dataclass(frozen=True)
class Published:
    """One facts file, gzipped or plain."""

    path: Path

    @cached_property
    def _raw(self) -> list[bytes]:
        raw = self.path.read_bytes()
        return (gzip.decompress(raw) if self.path.suffix == ".gz" else raw).splitlines(keepends=True)

    @cached_property
    def body(self) -> bytes:
        """The bytes below the header; for a list, the bytes of the publisher's file."""
        return b"".join(line for line in self._raw if not line.startswith(b"#"))

    @cached_property
    def sha256(self) -> str:
        return hashlib.sha256(self.body).hexdigest()

    @cached_property
    def origin(self) -> str:
        """``owner/repository:path@commit``, several joined by a semicolon."""
        header = [line.decode("utf-8").strip("# \n") for line in self._raw if line.startswith(b"# source:")]
        return "; ".join(line.removeprefix("source:").strip() for line in header)

    def lines(self) -> list[str]:
        return [line for line in self.body.decode("utf-8").splitlines() if line]

    def rows(self) -> Iterator[list[str]]:
        """The tab-separated cells of each line of a table without a head."""
        return (line.split("\t") for line in self.lines())

    def records(self) -> Iterator[dict[str, str]]:
        """The lines of a table with a head, by column name."""
        head, *rows = self.rows()
        return (dict(zip(head, row, strict=True)) for row in rows)
