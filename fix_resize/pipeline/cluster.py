"""Run shards on a Dask cluster, with the same jobs and outcomes as local processes."""

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

ENCRYPTED_SCHEMES: Final = ("tls", "wss")
CONNECT_TIMEOUT: Final = 10
WORKER_TIMEOUT: Final = 60
"""Seconds to wait for a scheduler, and for its first worker."""

Outcomes = Generator[tuple[ShardJob, ShardOutcome], None, None]


def on_dask(jobs: Iterable[ShardJob], address: str) -> Outcomes:
    """Run shards on a Dask cluster whose workers see the same folders as this process."""
    distributed = need("distributed", "dask", where="--scheduler")
    jobs = iter(jobs)
    with _connected(distributed, address) as client:
        running: dict[Any, ShardJob] = {}
        completed = distributed.as_completed(loop=client.loop)

        def submit_jobs(number: int) -> None:
            for job in islice(jobs, number):
                future = client.submit(run_shard, job, pure=False)
                running[future] = job
                completed.add(future)

        submit_jobs(2 * sum(client.nthreads().values()))
        for future in completed:
            yield running.pop(future), _result_of(distributed, future, address)
            future.release()
            submit_jobs(1)


@contextmanager
def _connected(distributed: Any, address: str) -> Iterator[Any]:
    arguments = distributed.Security().get_connection_args("client")
    if urlsplit(address).scheme in ENCRYPTED_SCHEMES and arguments.get("ssl_context") is None:
        raise SplitsError(
            "a scheduler with TLS requires a certificate, and none is configured",
            where=address,
            hint="set DASK_DISTRIBUTED__COMM__TLS__* to its files: see docs/computing.md",
        )
    try:
        client = distributed.Client(address, timeout=CONNECT_TIMEOUT, set_as_default=False)
    except (OSError, ValueError, RuntimeError) as error:  # a timeout is an OSError
        raise _no_answer("no Dask scheduler answers", address) from error
    with _silenced("distributed", "distributed.client"), client:
        try:
            client.wait_for_workers(1, timeout=WORKER_TIMEOUT)
        except OSError as error:
            raise _no_answer("the Dask scheduler has no worker", address) from error
        yield client


@contextmanager
def _silenced(*names: str) -> Iterator[None]:
    """Silence loggers that would print an error that is raised here as a SplitsError."""
    levels = {logging.getLogger(name): logging.getLogger(name).level for name in names}
    for logger in levels:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in levels.items():
            logger.setLevel(level)


def _no_answer(message: str, address: str) -> SplitsError:
    hint = f"start 'dask scheduler' and 'dask worker {address}', then run this again"
    return SplitsError(message, where=address, hint=hint)


def _result_of(distributed: Any, future: Any, address: str) -> ShardOutcome:
    try:
        outcome: ShardOutcome = future.result()
    except distributed.scheduler.KilledWorker as error:
        raise SplitsError(
            "Dask workers died repeatedly on one shard",
            where=address,
            hint="is memory short? the same command continues from here",
        ) from error
    except (distributed.CancelledError, distributed.comm.CommClosedError) as error:
        raise SplitsError(
            "the Dask scheduler has stopped", where=address, hint="the same command continues from here"
        ) from error
    return outcome


def check_address(address: str) -> str | None:
    """Return a warning about an unencrypted, non-local scheduler, else None.

    Anyone who can reach a scheduler that requires no certificate can run code on its workers.
    """
    try:
        parts = urlsplit(address if "://" in address else f"tcp://{address}")
        port = parts.port
    except ValueError as error:  # an unclosed bracket, a port that is not a number
        raise _bad_address(address, str(error)) from None
    if not parts.hostname or port is None:
        raise _bad_address(address, "it lacks a host or a port")
    if parts.scheme in ENCRYPTED_SCHEMES or _loopback(parts.hostname):
        return None
    return (
        f"warning: {address} is not encrypted (tls://) and not on this machine: "
        "anyone who reaches it can run code on its workers and change what they build"
    )


def _bad_address(address: str, reason: str) -> SplitsError:
    return SplitsError(
        f"not the address of a Dask scheduler: {reason}",
        where=printable(address),
        hint="as in tcp://127.0.0.1:8786",
    )


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
