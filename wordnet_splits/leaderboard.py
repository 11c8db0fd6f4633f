"""Entries of the leaderboard: the schema of ``entry.json``, which stands beside the tables of results.

Who submitted it, and how it is repeated, is the word of its author. Its facts are read from the results and
the benchmark by ``loaders.harness.leaderboard``, when it is written as when it is checked.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.schemas import BenchmarkName, Count, Name, Role, Sha256, read_sealed

ENTRY: Final = "entry.json"

Text = Annotated[str, Field(max_length=2000)]


class EntryPart(BaseModel):
    """Base of the parts of ``entry.json``."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ScoredSet(EntryPart):
    """One test set.

    Attributes
    ----------
    scored, expected : its images, and how many the benchmark has; None where that is not known.
    seen : fingerprint of the images scored.
    listed : the benchmark's fingerprint of the set, None where the benchmark is not at hand.
    """

    group: Name
    role: Role
    scored: Count
    expected: Count | None
    seen: Sha256
    listed: Sha256 | None


class Network(EntryPart):
    """One run of a model, and the fingerprint of its weights."""

    model: Text
    model_key: Text


class Facts(EntryPart):
    """What the results and the benchmark say themselves.

    Attributes
    ----------
    about : SHA-256 of ``about.json``, which holds those of the tables.
    classes : the benchmark's fingerprint of its classes. images : of all its images; None while some await
        their source, or where the benchmark is not at hand.
    evaluation : the fingerprint of its transforms, normalisation, roles and views.
    sources : of the datasets that it carries, None where it carries none.
    sets : every test set, by name, those that should have been scored and were not among them.
    """

    benchmark: BenchmarkName
    version: Count
    about: Sha256
    classes: Sha256 | None
    images: Sha256 | None
    evaluation: Sha256
    sources: Sha256 | None
    sets: Annotated[tuple[ScoredSet, ...], Field(min_length=1)]
    networks: Annotated[tuple[Network, ...], Field(min_length=1)]
    detectors: Annotated[tuple[Text, ...], Field(min_length=1)]


class LeaderboardEntry(EntryPart):
    """``entry.json``.

    Attributes
    ----------
    name : of its folder. by : who submitted it. url : of a paper or of code. note : one sentence.
    commands : what was run, line by line.
    """

    schema_: Literal[1] = Field(alias="schema")
    name: Name
    by: Annotated[Text, Field(min_length=1)]
    url: Text = ""
    note: Text = ""
    commands: Annotated[tuple[Text, ...], Field(min_length=1)]
    facts: Facts


def read_entry(folder: str | Path) -> LeaderboardEntry:
    """Read the entry of a folder of results.

    Raises
    ------
    DataError : there is none, it is malformed or was altered, or a file of the folder is a link.
    """
    for path in (Path(folder), *sorted(Path(folder).glob("*"))):
        if path.is_symlink():  # where it leads, another file may lie tomorrow
            raise DataError(
                "is a link, and an entry holds files alone", where=str(path), hint="copy the file"
            )
    return read_sealed(Path(folder) / ENTRY, LeaderboardEntry, hint="submit the results again")
