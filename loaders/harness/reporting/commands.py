"""Commands that repeat results, or the Python call where the sets were given in Python."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from wordnet_splits.base.errors import SplitsError
from wordnet_splits.catalog.declarations import using_sources
from wordnet_splits.finding import load_manifest
from wordnet_splits.sources import source_class

from ..comparison.entries import Draw, NamedResults
from ..detectors.openood import OPENOOD
from ..evaluation.schema import MODEL, About, MetricFacts, RunFacts
from ..evaluation.sweeps import params_of
from ..plugins import IN_ARRAYS

TRAINED, PUBLISHED, FILE = "trained:", "published, ", "file "
"""Beginnings of the recorded origin of weights."""
REBUILT = (
    "Rebuilt from what the results record, without options of models (--mapping, --transform). Replace the "
    "words in capitals: SOURCE_ROOT is the folder of a dataset (a store of `wordnet-splits pack`, --packed "
    "PACKED, takes the place of all), WEIGHTS the folder of a file of weights."
)
IN_PYTHON = (
    "The sets were given in Python, which no command line can: in the place of each ... stand the model, the "
    "datasets or the arrays, which results do not record."
)


def remarks(draw: Draw) -> list[str]:
    """Return sentences on the parts that commands and calls leave open."""
    abouts = [evaluation.results.about for evaluation in draw.results]
    from_python = [bool(about.own_sets) for about in abouts]
    lines = [*([] if all(from_python) else [REBUILT]), *([IN_PYTHON] if any(from_python) else [])]
    in_session = [facts.name for about in abouts for facts in about.metrics if not _has_path(facts)]
    if in_session:
        names = ", ".join(dict.fromkeys(in_session))
        lines.append(f"Defined in a session, so no command computes them: the metrics {names}.")
    objects = [row.detector for about in abouts for row in about.foreign if row.protocol == OPENOOD]
    if objects:
        names = ", ".join(dict.fromkeys(objects))
        lines.append(f"Objects in Python, for which MODULE:NAME of the object stands: {names}.")
    return lines


def _has_path(facts: MetricFacts) -> bool:
    """Return whether a user's metric can be imported as MODULE:NAME."""
    module, _, name = facts.origin.partition(":")
    return module != "__main__" and name.isidentifier()


def commands(draw: Draw) -> Iterator[str]:
    """Yield command lines that repeat the evaluations, as far as the results record them."""
    for evaluation in draw.results:
        yield (python_call if evaluation.results.about.own_sets else command_of)(evaluation)
        if Path(evaluation.name).is_dir():
            yield shlex.join(["unknown-eval", "check-results", evaluation.name])


def command_of(evaluation: NamedResults) -> str:
    """Return the command line that repeats an evaluation, as far as the results record it."""
    about = evaluation.results.about
    words = ["unknown-eval", "run", "--benchmark", about.benchmark]
    trained = all(run.weights.startswith(TRAINED) for run in about.runs)
    if all(run.weights == IN_ARRAYS for run in about.runs):
        words += ["--arrays", "DIR", "--model-id", about.models[0]]
    else:
        words += [word for run in about.runs for word in ("--model", _model(run))]
        files = [run.weights for run in about.runs if run.weights.startswith(FILE)]
        words += [word for file in files for word in ("--weights", f"WEIGHTS/{Path(file).name}")]
        words += [
            word for name in _sources(about) for word in ("--root", f"{name}={_placeholder(name)}_ROOT")
        ]
    words += ["--runs"] if not trained and len(about.models) == 1 < len(about.runs) else []
    words += ["--detectors", _detectors(evaluation)]
    words += ["--sweep"] if _is_swept(evaluation) else []
    if about.options.replicates:
        words += ["--bootstrap", str(about.options.replicates), "--seed-boot", str(about.options.seed)]
    words += [word for facts in about.metrics if _has_path(facts) for word in ("--metric", facts.origin)]
    words += ["--allow-missing"] if about.left_out else []
    return shlex.join(words)


def _model(run: RunFacts) -> str:
    """Return a model as `run` takes it, where the results record that, else its name."""
    if run.weights.startswith(TRAINED):
        return run.weights
    return run.weights.removeprefix(PUBLISHED) if run.weights.startswith(PUBLISHED) else run.name


def _sources(about: About) -> list[str]:
    """Return the sources whose folders an evaluation reads; none where the benchmark is not here."""
    try:
        manifest = load_manifest(about.benchmark)
    except SplitsError:
        return []
    with using_sources(manifest.declarations):
        names = sorted({row.source for row in manifest.groups})
        return [name for name in names if source_class(name).rooted]


def _placeholder(name: str) -> str:
    return re.sub(r"[^A-Z0-9]", "_", name.upper())


def python_call(evaluation: NamedResults) -> str:
    """Return the call that repeats an evaluation on user sets, as far as the results record it."""
    about = evaluation.results.about
    sets = ", ".join(f"{name!r}: ..." for name in about.own_sets)
    arguments = [f"detectors={_detectors(evaluation)!r}"]
    arguments += ["sweep=True"] if _is_swept(evaluation) else []
    if about.options.replicates:
        arguments += [f"bootstrap={about.options.replicates}", f"seed_boot={about.options.seed}"]
    if not any(run.device for run in about.runs):  # arrays
        arguments += [] if about.benchmark == "own-sets" else [f"name={about.benchmark!r}"]
        arguments += [f"model={run.model!r}" for run in about.runs if run.named]
        return f"loaders.evaluate_arrays({{{sets}}}, {', '.join(arguments)})"
    run_counts = {model: len(about.runs_of(model)) for model in about.models}
    runs = (f"{model!r}: {_dots(n)}" for model, n in run_counts.items())
    model = "..." if len(about.runs) == 1 else f"{{{', '.join(runs)}}}"
    return f"loaders.evaluate({model}, sets={{{sets}}}, {', '.join(arguments)})"


def _detectors(evaluation: NamedResults) -> str:
    """Return the detectors as `run` takes them: with their parameters, except those chosen by a sweep."""
    specifications = []
    imported = {  # classes of pytorch-ood; objects of OpenOOD have no path
        row.detector.partition("[")[0]: ":".join(row.object.rsplit(".", 1))
        for row in evaluation.results.about.foreign
        if row.protocol != OPENOOD
    }
    for label in evaluation.results.detectors:
        row = evaluation.results.rows(detector=label)[0]
        params = params_of(row["params"])
        name = re.sub(r"\[.*", "", label)
        if name in imported:
            label, name = label.replace(name, imported[name], 1), imported[name]
        if row["chosen_on"]:
            specifications.append(name)
        elif not params or label == MODEL or "[" in label:
            specifications.append(label)
        else:
            specifications.append(f"{name}[{','.join(f'{key}={value}' for key, value in params.items())}]")
    return ",".join(specifications)


def _is_swept(evaluation: NamedResults) -> bool:
    table = evaluation.results.results
    return any(table["chosen_on"].unique().to_pylist())


def _dots(runs: int) -> str:
    return "..." if runs == 1 else f"[{', '.join(['...'] * runs)}]"
