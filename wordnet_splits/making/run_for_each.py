"""Runs of a function, such as `build_benchmark`, for several benchmarks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from wordnet_splits.base.progress import Progress
from wordnet_splits.base.workers import run_jobs
from wordnet_splits.manifest import Manifest
from wordnet_splits.recipe import Recipe

Benchmark = TypeVar("Benchmark", Manifest, Recipe)
Result = TypeVar("Result")


def run_for_each(
    function: Callable[..., Result],
    benchmarks: Sequence[Benchmark],
    *,
    task: str,
    roots: Mapping[str, Path],
    workers: int,
    progress: Progress,
    **options: Any,
) -> Iterator[Result]:
    """Yield the result of ``function``, `build_benchmark` or `verify_benchmark`, for each benchmark in order.

    With roots, nearly all the time goes into reading images: the benchmarks run one after the other, each
    with all workers. Without roots, each worker runs whole benchmarks.

    Parameters
    ----------
    task : name of the progress bar, such as ``building``.
    """
    if roots or len(benchmarks) == 1:
        for benchmark in benchmarks:
            yield function(benchmark, roots=roots, workers=workers, progress=progress, **options)
        return
    jobs = run_jobs(partial(function, **options), benchmarks, workers, name=_name, ordered=True)
    with progress.task(task, len(benchmarks)) as bar, closing(jobs) as results:
        for _, result in results:
            bar.advance()
            yield result


def _name(benchmark: Manifest | Recipe) -> str:
    return benchmark.name
