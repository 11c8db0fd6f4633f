"""Fill into the committed results what their schema has gained since, from the frozen benchmarks.

``python -m tests.resealing``: ``about.json`` and ``entry.json`` of each folder are written anew and sealed;
the tables stay as they are. Results whose images are not the benchmark's are refused.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from loaders.harness.evaluation.results import ABOUT
from loaders.harness.evaluation.schema import Sealed, fingerprints_of
from loaders.harness.leaderboard.check import facts_of
from wordnet_splits.base.errors import DataError
from wordnet_splits.base.schemas import CHECKSUM, validate, write_sealed
from wordnet_splits.base.text_formats import read_json
from wordnet_splits.benchmark.manifest.places import shipped_folder
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.hub.entries import ENTRY, LeaderboardEntry


def reseal(folder: Path) -> bool:
    """Fill and seal the description and the entry of a folder of results; say whether anything was lacking.

    Raises
    ------
    DataError : its images are not those of the benchmark of its name, or what it says is malformed.
    """
    sealed = read_json(folder / ABOUT)
    sealed.pop(CHECKSUM)
    about = sealed["about"]
    name, _, draw = about["benchmark"].partition("@")
    prints = fingerprints_of(load_manifest(name))
    if draw:  # another draw has other images, and is evaluated as the benchmark is
        prints["images"] = about["images_fingerprint"]
    if about["images_fingerprint"] != prints["images"]:
        raise DataError(f"is not of the images of {name}", where=str(folder))
    filled = about | {f"{what}_fingerprint": value for what, value in prints.items()}
    if filled == about:
        return False
    sealed["about"] = filled
    validate(Sealed, sealed, where=str(folder / ABOUT))
    write_sealed(folder / ABOUT, sealed)
    entry = read_json(folder / ENTRY)
    entry.pop(CHECKSUM)
    entry["facts"] = facts_of(folder).model_dump(mode="json")
    validate(LeaderboardEntry, entry, where=str(folder / ENTRY))
    write_sealed(folder / ENTRY, entry)
    return True


def main() -> None:
    """Reseal every folder of results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=shipped_folder() / "results")
    for place in sorted(parser.parse_args().folder.glob(f"*/{ABOUT}")):
        print(place.parent.name, "filled" if reseal(place.parent) else "lacks nothing")


if __name__ == "__main__":
    main()
