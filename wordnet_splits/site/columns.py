"""Tables as the pages read them: an object of columns, and figures of as many digits as are shown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

DIGITS = 6

Columns = dict[str, list[Any]]


def columns(names: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> Columns:
    """Return rows as columns, in the order of ``names``; NaN becomes None."""
    found: Columns = {name: [] for name in names}
    for row in rows:
        for name in names:
            found[name].append(shown(row[name]))
    return found


def shown(value: Any) -> Any:
    """Return a figure rounded to six digits, None for what is no finite number; all else as it is."""
    if isinstance(value, float):
        return round(value, DIGITS) if math.isfinite(value) else None
    return value
