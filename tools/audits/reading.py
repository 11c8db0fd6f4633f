"""The lists of ``lists.toml``, and the audit of each."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.facts.published import Published
from wordnet_splits.audit.overlaps import audit_classes
from wordnet_splits.audit.report import Audit
from wordnet_splits.datasets.catalog import load_catalog

Where = Mapping[str, Sequence[str]]
SHIPPED = "shipped"


@dataclass(frozen=True)
class Listed:
    """A list as ``lists.toml`` declares it."""

    name: str
    cite: str
    given: str = ""
    file: str = ""
    column: str = "wnid"
    head: Sequence[str] = ()
    where: Where | None = None
    unless: Where | None = None
    known: Where | None = None
    against: str = "imagenet1k"
    of: str | None = None
    sample: str = ""
    licence: str = SHIPPED
    whole: bool = True

    @property
    def standard(self) -> bool:
        """Whether the known classes are ImageNet-1K's."""
        return self.known is None and self.against == "imagenet1k"

    def origin(self, facts: Path) -> str:
        """Return where the list was read, ``owner/repository:path@commit`` or its name among ours."""
        return self.given or Published(facts / self.file).origin

    def audit(self, facts: Path) -> Audit:
        """Audit the list."""
        if self.given:
            return audit_classes(self.given, self.against, images=bool(self.sample))
        classes: Sequence[str] = self._classes(facts, self.where, self.unless)
        if self.of is not None:  # file names have no slash
            ids = {item.class_id.replace("/", "_"): item.class_id for item in load_catalog(self.of)}
            classes = [ids[name] for name in classes]
        known = self.against if self.known is None else self._classes(facts, self.known, None)
        return audit_classes(classes, known, of=self.of, images=bool(self.sample))

    def _classes(self, facts: Path, where: Where | None, unless: Where | None) -> list[str]:
        published = Published(facts / self.file)
        rows: Iterable[dict[str, str]]
        if self.head:
            rows = (dict(zip(self.head, row, strict=True)) for row in published.rows())
        else:
            rows = published.records()
        return [
            row[self.column]
            for row in rows
            if all(row[key] in values for key, values in (where or {}).items())
            and not any(row[key] in values for key, values in (unless or {}).items())
        ]


def lists() -> list[Listed]:
    """Return the lists in the order of the page."""
    text = (Path(__file__).parent / "lists.toml").read_text(encoding="utf-8")
    tables: list[dict[str, Any]] = tomllib.loads(text)["list"]
    return [Listed(**table) for table in tables]


def audited(facts: Path) -> Iterator[tuple[Listed, Audit]]:
    """Yield every list with its audit."""
    for class_list in lists():
        yield class_list, class_list.audit(facts)
