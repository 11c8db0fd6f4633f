"""The option ``--shard I/N`` of commands that run as an array job."""

from __future__ import annotations

import re
from typing import Final

from wordnet_splits.base.errors import DataError

SHARE: Final = re.compile(r"([0-9]{1,6})/([0-9]{1,6})")


def parse_share(text: str) -> tuple[int, int]:
    """Return (i, n) of ``i/n``, a job's number from 1 and the number of jobs."""
    match = SHARE.fullmatch(text)
    index, count = map(int, match.groups()) if match else (0, 0)
    if not 1 <= index <= count:
        raise DataError(
            f"{text!r} is not a share of a job", where="--shard", hint="as in --shard 3/8: 1 to 8"
        )
    return index, count
