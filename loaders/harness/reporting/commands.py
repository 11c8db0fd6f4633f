"""How results are made again: command lines, or the call in Python where the sets were given there."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from wordnet_splits.base.text_formats import parse_json

from ..comparison.entries import Draw, Source
from ..evaluation.schema import MODEL

TRAINED = "trained:"
REBUILT = (
    "Rebuilt from what the results record, and so without the places of images (--root, --packed) and the "
    "options of models (--weights, --mapping)."
)
IN_PYTHON = (
    "The sets were given in Python, which no command line can: in the place of each ... stand the model, the "
    "datasets or the arrays, which results do not record."
)


def remarks(draw: Draw) -> list[str]:
    """Say what the calls below leave open."""
    own = [bool(source.tables.about.own_sets) for source in draw.sources]
    return [*([] if all(own) else [REBUILT]), *([IN_PYTHON] if any(own) else [])]


def commands(draw: Draw) -> Iterator[str]:
    """Yield command lines that would evaluate the same again, as far as results say."""
    for source in draw.sources:
        yield (python_call if source.tables.about.own_sets else command_of)(source)
        if Path(source.name).is_dir():
            yield shlex.join(["unknown-eval", "check-results", source.name])


def command_of(source: Source) -> str:
    """Return the command line that would evaluate the same again, as far as results say."""
    about = source.tables.about
    words = ["unknown-eval", "run", "--benchmark", about.benchmark]
    trained = all(run.weights.startswith(TRAINED) for run in about.runs)
    words += [word for run in about.runs for word in ("--model", run.weights if trained else run.name)]
    words += ["--runs"] if not trained and len(about.models) == 1 < len(about.runs) else []
    chosen = {row["chosen_on"] for row in source.tables.results.to_pylist() if row["chosen_on"]}
    words += ["--detectors", ",".join(_detector(source, name) for name in source.tables.detectors)]
    words += ["--sweep"] if chosen else []
    if about.options.replicates:
        words += ["--bootstrap", str(about.options.replicates), "--seed-boot", str(about.options.seed)]
    words += ["--allow-missing"] if about.left_out else []
    return shlex.join(words)


def _detector(source: Source, label: str) -> str:
    """The detector as `run` takes it: with its parameters, unless they were chosen by a sweep."""
    row = next(row for row in source.tables.results.to_pylist() if row["detector"] == label)
    params = params_of(source, row)
    plain = re.sub(r"\[.*", "", label)
    if row["chosen_on"] or not params or label == MODEL or "[" in label:
        return label if not row["chosen_on"] else plain
    return f"{plain}[{','.join(f'{key}={value}' for key, value in params.items())}]"


def params_of(source: Source, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a row of results."""
    found = parse_json(row["params"], where=source.name)
    return found if isinstance(found, dict) else {}


def python_call(source: Source) -> str:
    """Return the call that would evaluate sets of one's own again, as far as results say."""
    about = source.tables.about
    arrays = not any(run.device for run in about.runs)
    sets = ", ".join(f"{text!r}: ..." for text in about.own_sets)
    detectors = ",".join(_detector(source, name) for name in source.tables.detectors)
    given = [f"detectors={detectors!r}"]
    given += ["sweep=True"] if any(row["chosen_on"] for row in source.tables.results.to_pylist()) else []
    if about.options.replicates:
        given += [f"bootstrap={about.options.replicates}", f"seed_boot={about.options.seed}"]
    if arrays:
        given += [] if about.benchmark == "own-sets" else [f"name={about.benchmark!r}"]
        given += [f"model={run.model!r}" for run in about.runs if run.named]
        return f"loaders.evaluate_arrays({{{sets}}}, {', '.join(given)})"
    names = {model: len(about.runs_of(model)) for model in about.models}
    runs = (f"{model!r}: {_dots(n)}" for model, n in names.items())
    model = "..." if len(about.runs) == 1 else f"{{{', '.join(runs)}}}"
    return f"loaders.evaluate({model}, sets={{{sets}}}, {', '.join(given)})"


def _dots(runs: int) -> str:
    return "..." if runs == 1 else f"[{', '.join(['...'] * runs)}]"
