"""Shards on a Dask cluster: the same function, jobs and records as in `wordnet_splits.base.workers`."""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, Final
from urllib.parse import urlsplit

from fix_resize.pipeline.shards import ShardJob, ShardOutcome, run_shard
from wordnet_splits.base.errors import SplitsError
from wordnet_splits.base.lazy import need
from wordnet_splits.base.names import printable

ENCRYPTED: Final = ("tls", "wss")

CONNECT_SECONDS: Final = 10
WORKER_SECONDS: Final = 60
"""How long to wait for a scheduler, and for its first worker."""


Done = Generator[tuple[ShardJob, ShardOutcome], None, None]


def on_dask(jobs: Iterable[ShardJob], address: str) -> Done:
    """Run shards on a Dask cluster whose workers see the same folders as this process.

    Parameters
    ----------
    address : of the scheduler, such as ``tcp://127.0.0.1:8786``.

    Raises
    ------
    SplitsError : dask is not installed; the scheduler cannot be reached, goes away or has no worker; or
        workers die repeatedly over the same shard.
    """
    distributed = need("distributed", "dask", where="--scheduler")
    jobs = iter(jobs)
    with _connected(distributed, address) as client:
        running: dict[Any, ShardJob] = {}
        done = distributed.as_completed(loop=client.loop)

        def submit(most: int) -> None:
            for job in islice(jobs, most):
                future = client.submit(run_shard, job, pure=False)
                running[future] = job
                done.add(future)

        submit(2 * sum(client.nthreads().values()))
        for future in done:
            yield running.pop(future), _fetched(distributed, future, address)
            future.release()
            submit(1)


@contextmanager
def _connected(distributed: Any, address: str) -> Iterator[Any]:
    arguments = distributed.Security().get_connection_args("client")
    if urlsplit(address).scheme in ENCRYPTED and arguments.get("ssl_context") is None:
        raise SplitsError(
            "a scheduler with TLS requires a certificate, and none is configured",
            where=address,
            hint="DASK_DISTRIBUTED__COMM__TLS__* name the files: see docs/dask.md",
        )
    try:
        client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, RuntimeError) as error:  # a time-out is an OSError
        raise _unanswered("no Dask scheduler answers", address) from error
    with _quiet("distributed", "distributed.client"), client:
        try:
            client.wait_for_workers(1, timeout=WORKER_SECONDS)
        except OSError as error:
            raise _unanswered("the Dask scheduler has no worker", address) from error
        yield client


@contextmanager
def _quiet(*names: str) -> Iterator[None]:
    """Keep loggers from printing what is raised here as one of our own errors.

    A connection that ends is reported by whichever part of distributed notices first, some with a traceback.
    """
    levels = {logging.getLogger(name): logging.getLogger(name).level for name in names}
    for logger in levels:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in levels.items():
            logger.setLevel(level)


def _unanswered(what: str, address: str) -> SplitsError:
    hint = f"start 'dask scheduler' and 'dask worker {address}', then run this again"
    return SplitsError(what, where=address, hint=hint)


def _fetched(distributed: Any, future: Any, address: str) -> ShardOutcome:
    try:
        record: ShardOutcome = future.result()
    except distributed.scheduler.KilledWorker as error:
        raise SplitsError(
            "Dask workers died repeatedly over one shard",
            where=address,
            hint="is memory short? the same command continues from here",
        ) from error
    except (distributed.CancelledError, distributed.comm.CommClosedError) as error:
        raise SplitsError(
            "the Dask scheduler is gone", where=address, hint="the same command continues from here"
        ) from error
    return record


def check_address(address: str) -> str | None:
    """Return a warning to give before jobs are sent to a scheduler, None where there is none.

    Whoever can reach a scheduler that asks for no certificate can run code on its workers.

    Raises
    ------
    SplitsError : it is malformed.
    """
    try:
        parts = urlsplit(address if "://" in address else f"tcp://{address}")
        port = parts.port
    except ValueError as error:  # an unclosed bracket, a port that is not a number
        raise _no_address(address, str(error)) from None
    if not parts.hostname or port is None:
        raise _no_address(address, "it lacks a host or a port")
    if parts.scheme in ENCRYPTED or _loopback(parts.hostname):
        return None
    return (
        f"warning: {address} is neither on this machine nor tls://: "
        "whoever reaches it can run code on its workers and change what they build"
    )


def _no_address(address: str, why: str) -> SplitsError:
    return SplitsError(
        f"not the address of a Dask scheduler: {why}",
        where=printable(address),
        hint="as in tcp://127.0.0.1:8786",
    )


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
