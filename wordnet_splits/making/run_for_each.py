"""Several benchmarks, one process each, or one after the other with all processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from wordnet_splits.base.progress import Progress
from wordnet_splits.base.workers import run_jobs

GivenBenchmark = TypeVar("GivenBenchmark")
Result = TypeVar("Result")


def run_for_each(
    function: Callable[..., Result],
    benchmarks: Sequence[GivenBenchmark],
    *,
    what: str,
    roots: Mapping[str, Path],
    workers: int,
    progress: Progress,
    **options: Any,
) -> Iterator[Result]:
    """Yield what ``function``, which is `build` or `verify`, makes of each benchmark, in their order.

    With roots, nearly all the time goes into reading images, so all workers read those of one benchmark
    after the other. Without, there is little to read, and each worker does whole benchmarks.

    Parameters
    ----------
    what : what the progress is called, such as ``building``.
    """
    if roots or len(benchmarks) == 1:
        for benchmark in benchmarks:
            yield function(benchmark, roots=roots, workers=workers, progress=progress, **options)
        return
    jobs = run_jobs(partial(function, **options), benchmarks, workers, name=str, ordered=True)
    with progress.task(what, len(benchmarks)) as task, closing(jobs) as done:
        for _, result in done:
            task.advance()
            yield result
