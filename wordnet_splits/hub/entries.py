"""Entries of the leaderboard: the schema of ``entry.json``, the file next to the tables of results.

Author and commands are statements of the submitter. ``loaders.harness.leaderboard`` computes the facts from
the results and the benchmark, both when an entry is written and when it is checked.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.text_formats import BenchmarkName, Count, Name, Role, Sha256, read_sealed

ENTRY: Final = "entry.json"

HUB_METRIC: Final = "auroc"
HUB_ROLES: Final = ("near", "far")
"""Metric and roles of a benchmark's tasks on the Hugging Face Hub, where a task is a leaderboard."""

NAMES_TOLD: Final = "the negative words are names of"
"""Part of the note of results whose vision-language model received names of test classes."""

FITTED_ON_OUTLIERS: Final = frozenset({"opengan", "oodl"})
"""Detectors that learn from OOD validation images."""

Text = Annotated[str, Field(max_length=2000)]


class EntryPart(BaseModel):
    """Base of the parts of ``entry.json``."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())


class ScoredSet(EntryPart):
    """A test set.

    Attributes
    ----------
    scored, expected : number of scored images, and of the benchmark's; None if unknown.
    seen : fingerprint of the scored images.
    listed : the benchmark's fingerprint of the set; None if the benchmark is not at hand.
    """

    group: Name
    role: Role
    scored: Count
    expected: Count | None
    seen: Sha256
    listed: Sha256 | None


class Network(EntryPart):
    """A run of a model, and the fingerprint of its weights."""

    model: Text
    model_key: Text


class Facts(EntryPart):
    """Facts computed from the results and the benchmark.

    Attributes
    ----------
    about : SHA-256 of ``about.json``, which contains the tables' SHA-256.
    classes : the benchmark's fingerprint of its classes.
    images : the fingerprint of all its images; None while a source of images is missing, or if the benchmark
        is not available.
    evaluation : the fingerprint of its transforms, normalisation, roles and views.
    sources : the fingerprint of the datasets that it carries; None if it carries none.
    sets : all test sets, by name, including those that should have been scored and were not.
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
    name : name of the folder.
    by : the submitter.
    url : a paper or code.
    note : one sentence.
    outliers : the outlier images that the networks were trained on, in the submitter's words; "" for none.
    commands : the commands that were run, line by line.
    """

    schema_: Literal[1] = Field(alias="schema")
    name: Name
    by: Annotated[Text, Field(min_length=1)]
    url: Text = ""
    note: Text = ""
    outliers: Text = ""
    commands: Annotated[tuple[Text, ...], Field(min_length=1)]
    facts: Facts


def hub_task(benchmark: str, role: str) -> str:
    """Return the id of a task of a benchmark on the Hugging Face Hub, as in ``digits-near``."""
    return f"{benchmark}-{role}"


def read_entry(folder: str | Path) -> LeaderboardEntry:
    """Read the entry of a folder of results."""
    for path in (Path(folder), *sorted(Path(folder).glob("*"))):
        if path.is_symlink():  # its target may change
            raise DataError(
                "is a link, and an entry contains only files", where=str(path), hint="copy the file"
            )
    return read_sealed(Path(folder) / ENTRY, LeaderboardEntry, hint="submit the results again")
