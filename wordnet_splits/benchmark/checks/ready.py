"""The benchmarks whose test images are at hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wordnet_splits.base.progress import Progress
from wordnet_splits.base.tabular import Tabular
from wordnet_splits.benchmark.checks.doctor import SourceState, check_sources, read_benchmarks
from wordnet_splits.benchmark.checks.held_images import Readiness
from wordnet_splits.datasets.sources.roots import Roots


@dataclass(frozen=True)
class ReadyBenchmarks(Tabular):
    """Result of `ready`; a row is a benchmark.

    Attributes
    ----------
    benchmarks : the test images at hand, by benchmark.
    unreadable : the sources with a root that cannot be read; their images count as absent.
    """

    benchmarks: Mapping[str, Readiness]
    unreadable: Sequence[SourceState]

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return the benchmarks, and ``yes``, ``partly (...)`` or ``no`` for each."""
        return [{"benchmark": name, "runs_here": x.runs_here} for name, x in self.benchmarks.items()]


def ready(
    roots: Roots | None = None, *, manifests: Path | None = None, progress: Progress | None = None
) -> ReadyBenchmarks:
    """Return for each benchmark whether its test images are at hand, from a scan of image names.

    Parameters
    ----------
    roots : folders of sources; the environment and ``roots.toml`` give further roots. Packed stores are not
        looked for.
    manifests : folder of frozen manifests; the usual folders by default.

    Raises
    ------
    UnknownNameError, SourceError : a root of an unknown source, or an unreadable ``roots.toml``.

    Examples
    --------
    >>> ready().benchmarks["digits"].runs_here  # its images are embedded
    'yes'
    """
    diagnosis = check_sources(roots, benchmarks=read_benchmarks(manifests), progress=progress)
    unreadable = [state for state in diagnosis.sources if state.error]
    return ReadyBenchmarks({b.name: b.ready for b in diagnosis.benchmarks}, unreadable)
