"""Steps within a budget of seconds: each in a process of its own, stopped in time, recorded, not repeated."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from wordnet_splits.base import files
from wordnet_splits.base.errors import DataError
from wordnet_splits.base.text_formats import read_json

Status = Literal["done", "failed", "stopped", "skipped"]
Execute = Callable[[Sequence[str], float, Path], int | None]
"""(arguments of Python, seconds, log) -> exit code, None where it was stopped in time."""

STATE, LOG = "state.json", "log.txt"
SUMMARY_JSON, SUMMARY_TEXT = "summary.json", "summary.md"
MARGIN = 5.0
"""Seconds of the budget that are kept for stopping a step and writing the summary."""


@dataclass(frozen=True)
class Step:
    """One step.

    Attributes
    ----------
    command : arguments of Python; its time and figures file replace ``{seconds}`` and ``{figures}``.
    share : largest share of the budget. least : fewest seconds left for the step to begin.
    """

    name: str
    title: str
    command: tuple[str, ...]
    share: float = 1.0
    least: float = 1.0


@dataclass(frozen=True)
class Record:
    """Outcome of a step and its figures by name; a stopped step has the figures that it reached."""

    name: str
    title: str
    status: Status
    seconds: float = 0.0
    detail: str = ""
    figures: Mapping[str, Any] = field(default_factory=dict)


def run_steps(
    steps: Sequence[Step],
    out: Path,
    budget: float,
    machine: Mapping[str, Any],
    *,
    execute: Execute | None = None,
    clock: Callable[[], float] = time.monotonic,
    say: Callable[[str], None] = lambda text: None,
) -> list[Record]:
    """Run the steps that ``out`` does not have as done, in order, and write state and summary after each.

    Parameters
    ----------
    budget : seconds for all steps; a step gets its share, or the remainder. machine : its description.
    execute : by default `in_time`.

    Raises
    ------
    DataError : ``out`` holds results of another machine or of other steps.
    """
    ends = clock() + budget - MARGIN
    before = _done(out, machine)
    records: list[Record] = []
    for number, step in enumerate(steps):
        if step.name in before:
            say(f"{step.name}: done before")
            records.append(before[step.name])
        else:
            records.append(_run(step, out, budget, ends, execute or in_time, clock, say))
        rest = [
            Record(later.name, later.title, "skipped", detail="not begun") for later in steps[number + 1 :]
        ]
        _write(out, machine, budget, [*records, *(before.get(later.name, later) for later in rest)])
    return records


def _run(
    step: Step,
    out: Path,
    budget: float,
    ends: float,
    execute: Execute,
    clock: Callable[[], float],
    say: Callable[[str], None],
) -> Record:
    began = clock()
    seconds = min(step.share * budget, ends - began)
    if seconds < step.least:
        detail = f"{max(seconds, 0):.0f} s are left, and it needs {step.least:.0f} s"
        say(f"{step.name}: skipped: {detail}")
        return Record(step.name, step.title, "skipped", detail=detail)
    say(f"{step.name}: {step.title}, up to {seconds:.0f} s")
    figures = out / f"figures-{step.name}.json"
    figures.unlink(missing_ok=True)
    words = [word.format(seconds=f"{seconds:.0f}", figures=figures) for word in step.command]
    code = execute(words, seconds, out / LOG)
    status: Status = "stopped" if code is None else "failed" if code else "done"
    detail = {"stopped": f"stopped after {seconds:.0f} s", "failed": f"exit code {code}: see {LOG}"}.get(
        status, ""
    )
    try:
        values = read_json(figures) if figures.exists() else {}
    except DataError as error:  # left by a step that was stopped during a write
        values, detail = {}, f"{detail}; {error}"
    figures.unlink(missing_ok=True)
    say(f"{step.name}: {status} in {clock() - began:.0f} s" + (f": {detail}" if detail else ""))
    return Record(step.name, step.title, status, clock() - began, detail, values)


def in_time(words: Sequence[str], seconds: float, log: Path) -> int | None:
    """Run Python with its output appended to a log, and end it with its children when the time is over."""
    with log.open("ab") as output:
        output.write(f"\n$ python {' '.join(words)}\n".encode())
        output.flush()
        process = subprocess.Popen(
            [sys.executable, *words], stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:  # also when this process is interrupted
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def exit_code(records: Sequence[Record]) -> int:
    """Return 0 where all steps are done, 1 where one failed, 3 where one was skipped or stopped."""
    statuses = {record.status for record in records}
    return 1 if "failed" in statuses else 3 if statuses - {"done"} else 0


def _done(out: Path, machine: Mapping[str, Any]) -> dict[str, Record]:
    """Return the steps that were done in ``out``, by name."""
    out.mkdir(parents=True, exist_ok=True)
    state = out / STATE
    if not state.exists():
        return {}
    hint = "give another OUT, or delete the folder"
    try:
        state_record = read_json(state)
        records = [Record(**row) for row in state_record["steps"]]
        same = state_record["machine"] == dict(machine)
    except (KeyError, TypeError) as error:
        raise DataError(f"is not the state of these steps: {error!r}", where=str(state), hint=hint) from None
    if not same:
        raise DataError(
            "holds results of another machine, other code or other data", where=str(out), hint=hint
        )
    return {record.name: record for record in records if record.status == "done"}


def _write(out: Path, machine: Mapping[str, Any], budget: float, records: Sequence[Record]) -> None:
    rows = [asdict(record) for record in records]
    files.write_json(out / STATE, {"machine": dict(machine), "steps": rows})
    files.write_json(out / SUMMARY_JSON, {"machine": dict(machine), "budget": budget, "steps": rows})
    files.write_text(out / SUMMARY_TEXT, _page(machine, budget, records))


def _page(machine: Mapping[str, Any], budget: float, records: Sequence[Record]) -> str:
    lines = ["# make gpu", "", f"{budget:.0f} s at most."]
    lines += ["", *(f"- {name}: {value}" for name, value in machine.items())]
    lines += ["", "| step | | seconds | |", "|---|---|---:|---|"]
    lines += [f"| {r.title} | {r.status} | {r.seconds:.0f} | {r.detail} |" for r in records]
    for record in records:
        texts = {name: value for name, value in record.figures.items() if "\n" in str(value)}
        short = {name: value for name, value in record.figures.items() if name not in texts}
        if record.figures:
            lines += ["", f"## {record.title}"]
        if short:
            lines += ["", "| what | |", "|---|---|", *(f"| {name} | {v} |" for name, v in short.items())]
        for name, value in texts.items():
            lines += ["", f"{name}:", "", "```", str(value).rstrip("\n"), "```"]
    return "\n".join([*lines, ""])
