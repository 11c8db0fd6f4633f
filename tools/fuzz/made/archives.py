"""Archives that lie, as the tests of the sources make them of sound ones."""

from __future__ import annotations

from tests.wordnet_splits.datasets.sources.hostile_archives import GZIP, IDX, ZIP, Lie, Lies
from tools.fuzz.made.making import Made, Make


def _told(lie: Lie) -> Make:
    change, _ = lie

    def make(path, rng):
        path.write_bytes(change(path.read_bytes()))

    return make


def _all(pattern: str, lies: Lies) -> Made:
    return {how: (pattern, _told(lie)) for how, lie in lies.items()}


IDX_FILES: Made = {**_all("*-ubyte", IDX), **_all("*-ubyte.gz", GZIP)}
ZIPS: Made = _all("*.zip", ZIP)
