"""What a picture is of: the entries of some results, and which sets and metric were asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wordnet_splits.base.errors import DataError, unknown
from wordnet_splits.metrics import ScoreSet

from ..comparison.entries import Draw, Entry, Given, Source, draws_of
from ..evaluation.metric_rows import UNKNOWN_ROLES
from ..evaluation.tables import Sets

REPLICATES = 200


@dataclass(frozen=True)
class Network:
    """One run of a model: its place in the results."""

    model: str
    name: str
    source: Source
    run: int

    @property
    def predictions(self) -> pa.Table:
        """What it predicts for every image, without ensembles.

        Raises
        ------
        DataError : it gave no logits, so nothing is predicted.
        """
        self.source.tables.require_scores("this plot")
        table = self.source.tables.predictions
        chosen = table.filter(pc.and_(pc.equal(table["detector"], ""), pc.equal(table["run"], self.run)))
        if not chosen.num_rows or chosen["prediction"].null_count:
            raise DataError(f"{self.name} gives no predictions", where=self.source.name)
        return chosen


@dataclass(frozen=True, eq=False)
class Subject:
    """Results on one benchmark, or one draw of it.

    Attributes
    ----------
    draw : its entries, the detectors asked for. wanted : names of the OOD sets asked for, None for all.
    metric : asked for, or None. store : folder of activations, or None.
    replicates : of the bootstrap behind intervals; 0 for none.
    """

    draw: Draw
    wanted: tuple[str, ...] | None = None
    metric: str | None = None
    store: Path | None = None
    replicates: int = REPLICATES

    @classmethod
    def of(
        cls,
        given: Sequence[Given],
        *,
        detectors: Sequence[str] | None = None,
        groups: Sequence[str] | None = None,
        metric: str | None = None,
        store: Path | None = None,
        replicates: int = REPLICATES,
    ) -> Subject:
        """Read results.

        Raises
        ------
        DataError : of several benchmarks or draws. UnknownNameError : no such set.
        """
        draws = draws_of(given, detectors)
        if len(draws) > 1:
            names = ", ".join(draw.benchmark for draw in draws)
            raise DataError(f"a picture is of one draw, not of {names}", hint="`compare` is over draws")
        sets = Sets.of(draws[0].first)
        for name in groups or ():
            if name not in sets.roles:
                raise unknown("set", name, sets.roles, where="--group")
        return cls(draws[0], None if groups is None else tuple(groups), metric, store, replicates)

    @property
    def benchmark(self) -> str:
        """The benchmark's name."""
        return self.draw.benchmark

    @property
    def entries(self) -> tuple[Entry, ...]:
        """What is drawn: a detector on the runs of a model each."""
        return self.draw.entries

    @cached_property
    def roles(self) -> Mapping[str, str]:
        """OOD set -> role, those asked for."""
        roles = Sets.of(self.draw.first).roles
        return {name: role for name, role in roles.items() if self.wanted is None or name in self.wanted}

    @cached_property
    def unknown_sets(self) -> tuple[str, ...]:
        """The near and far sets asked for.

        Raises
        ------
        DataError : there is none.
        """
        found = tuple(name for name, role in self.roles.items() if role in UNKNOWN_ROLES)
        if not found:
            raise DataError("the results have no near or far set among those asked for", where=self.benchmark)
        return found

    def label(self, entry: Entry) -> str:
        """Return what an entry is called in a legend: as short as the others allow."""
        parts = []
        if len({one.model for one in self.entries}) > 1:
            parts.append(entry.model)
        if len({one.detector for one in self.entries}) > 1 or not parts:
            parts.append(entry.detector)
        return " ".join(parts)

    def sets(self, entry: Entry, *roles: str) -> list[ScoreSet]:
        """Return the sets of some roles, of the entry's first run; OOD sets only if they are asked for."""
        held = entry.scored()[0].sets
        return [
            part for name, part in held.items() if part.role in roles and (part.is_id or name in self.roles)
        ]

    def inside(self, entry: Entry) -> list[ScoreSet]:
        """Return the ID sets, whose images must have been classified.

        Raises
        ------
        DataError : it is not known which predictions are right.
        """
        found = self.sets(entry, "id")
        if any(part.correct is None for part in found):
            raise DataError("it is not known which predictions are right", where=" ".join(entry.label))
        return found

    def networks(self) -> list[Network]:
        """Return the runs of the models, one each."""
        return [
            Network(source.labels[run.model], run.name, source, run.run)
            for source in self.draw.sources
            for run in source.tables.about.runs
        ]

    def first_networks(self) -> Iterator[Network]:
        """Yield the first run of each model."""
        seen = set()
        for network in self.networks():
            if network.model not in seen:
                seen.add(network.model)
                yield network

    @property
    def first_run(self) -> str:
        """What is said below a picture of single runs."""
        several = any(len(entry.runs) > 1 for entry in self.entries)
        return "of the first run of each model" if several else ""


def mean_over_runs(entry: Entry, metric: str, group: str, role: str) -> float:
    """Return the mean of a metric over an entry's runs.

    Raises
    ------
    DataError : it has none there.
    """
    values = entry.values(metric, group, role)
    if not values:
        raise DataError(
            f"no {metric} of {' '.join(entry.label)} on {group} ({role})", where=entry.runs[0][0].name
        )
    return float(np.mean(values))
