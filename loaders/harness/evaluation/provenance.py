"""The record of an evaluation: its networks and software, and the command or call that repeats it.

In commands folders of datasets are written as SOURCE_ROOT, files of weights as WEIGHTS/FILE, and objects
given in Python as ``...``. The bootstrap is left out: `ResultsMetadata.options` has it.
"""

from __future__ import annotations

import os
import platform
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from fix_resize.jpeg import jpeg_decoder
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.datasets.sources import source_class, source_names

from ..detectors.openood import OPENOOD
from ..extraction.outputs import GroupOutputs, ModelRun
from ..results.metadata import DISJOINT, ColumnsUsed, DetectorFacts, MetricFacts, ResultsMetadata, RunFacts


def run_facts(number: int, run: ModelRun, test: Mapping[str, GroupOutputs]) -> RunFacts:
    """Return the description of a network for ``about.json``."""
    class_map = next(iter(test.values())).classes
    known_classes = 1 if class_map is None else len(class_map.columns) or len(class_map.class_columns)
    return RunFacts(
        run=number,
        model=run.model,
        name=run.name,
        model_key=run.model_key,
        weights=run.weights,
        device=run.device,
        transforms={outputs.transform_key: outputs.transform for outputs in test.values()},
        class_map=None if class_map is None else ColumnsUsed.model_validate(class_map.record()),
        known_classes=known_classes,
        other_columns=class_map is not None and len(class_map.softmax_columns) > known_classes,
        named=run.user_named or run.model != run.name,
        prompts=run.prompts,
    )


PROGRAM = "wordnet-splits"
LIBRARIES = ("numpy", "scipy")
TORCH_LIBRARIES = ("torch", "torchvision", "timm", "transformers", "onnxruntime")
"""Packages whose versions are recorded if the evaluation ran a network."""


def software(*, with_torch: bool) -> dict[str, str]:
    """Return name -> version of what runs, with ``commit`` in a checkout and ``date`` (of UTC).

    ``JPEG decoder`` is that of this process (`fix_resize.jpeg`), if the evaluation ran a network.

    ``SOURCE_DATE_EPOCH`` (seconds since 1970) sets the date.
    """
    seconds = os.environ.get("SOURCE_DATE_EPOCH", "")
    now = datetime.fromtimestamp(int(seconds), UTC) if seconds.isdecimal() else datetime.now(UTC)
    names = (PROGRAM, *LIBRARIES, *(TORCH_LIBRARIES if with_torch else ()))
    versions = {name: found for name in names if (found := _version(name))}
    commit = commit_of(Path(__file__).parents[3])
    return {
        **versions,
        **({"JPEG decoder": jpeg_decoder().description} if with_torch else {}),
        **({"commit": commit} if commit else {}),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "date": now.strftime("%Y-%m-%d"),
    }


@cache
def commit_of(folder: Path) -> str:
    """Return the commit of a checkout, with ``-dirty`` if files differ; "" outside a checkout."""
    if not (folder / ".git").exists():
        return ""
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def command_line(about: ResultsMetadata, manifest: Manifest, inputs: Mapping[str, str]) -> str:
    """Return the command line of an evaluation on a benchmark."""
    words = ["unknown-eval", "run", "--benchmark", about.benchmark]
    if all(run.weights.kind == "arrays" for run in about.runs):
        words += ["--arrays", "DIR", "--model-id", about.models[0]]
    else:
        words += [word for run in about.runs for word in ("--model", run.weights.spec or run.name)]
        (origin, name), *others = ((run.weights, run.model) for run in about.runs)
        words += ["--model-id", name] if origin.kind == "model" and name != origin.spec and not others else []
        for origin in (run.weights for run in about.runs if run.weights.weights):
            is_file = origin.kind == "file"
            words += ["--weights", f"WEIGHTS/{Path(origin.weights).name}" if is_file else origin.weights]
        words += [word for name in _rooted_sources(manifest) for word in ("--root", placeholder(name))]
        for name, value in inputs.items():
            words += [f"--{name}={value}"] if value.startswith("-") else [f"--{name}", value]
    are_trained = all(run.weights.kind == "trained" for run in about.runs)
    words += ["--runs"] if not are_trained and len(about.models) == 1 < len(about.runs) else []
    words += ["--detectors", detector_list(about)]
    words += ["--sweep"] if _is_swept(about) else []
    words += ["--disjoint"] if _is_swept(about, DISJOINT) else []
    words += [word for facts in about.metrics if has_path(facts) for word in ("--metric", facts.origin)]
    words += ["--allow-missing"] if about.left_out else []
    return shlex.join(words)


def python_call(about: ResultsMetadata, inputs: Mapping[str, str]) -> str:
    """Return the call of an evaluation on sets given in Python; parameters as of `command_line`."""
    sets = ", ".join(f"{name!r}: ..." for name in about.custom_sets)
    arguments = [f"detectors={detector_list(about)!r}", *(["sweep=True"] if _is_swept(about) else [])]
    arguments += [f"{name}={value!r}" for name, value in inputs.items()]
    if not any(run.device for run in about.runs):  # arrays
        arguments += [] if about.benchmark == "own-sets" else [f"name={about.benchmark!r}"]
        arguments += [f"model={run.model!r}" for run in about.runs if run.named]
        return f"loaders.evaluate_arrays({{{sets}}}, {', '.join(arguments)})"
    counts = {model: len(about.runs_of(model)) for model in about.models}
    dots = {model: "..." if n == 1 else f"[{', '.join(['...'] * n)}]" for model, n in counts.items()}
    runs = ", ".join(f"{model!r}: {of_model}" for model, of_model in dots.items())
    model = "..." if len(about.runs) == 1 else f"{{{runs}}}"
    return f"loaders.evaluate({model}, sets={{{sets}}}, {', '.join(arguments)})"


def detector_list(about: ResultsMetadata) -> str:
    """Return the detectors as ``--detectors`` takes them: with the parameters that no sweep chose."""
    return ",".join(_specifications(about))


def _specifications(about: ResultsMetadata) -> Iterator[str]:
    first: dict[str, DetectorFacts] = {}
    for facts in about.detectors:
        first.setdefault(facts.detector, facts)
    for facts in first.values():
        label, name = facts.detector, re.sub(r"\[.*", "", facts.detector)
        if facts.foreign is not None and facts.foreign.protocol != OPENOOD:  # objects of OpenOOD have no path
            path = ":".join(facts.foreign.object.rsplit(".", 1))
            label, name = label.replace(name, path, 1), path
        if facts.chosen_on:
            yield name
        elif not facts.params or "[" in label:
            yield label
        else:
            yield f"{name}[{','.join(f'{key}={value}' for key, value in facts.params.items())}]"


def has_path(facts: MetricFacts) -> bool:
    """Return whether a user's metric can be imported as MODULE:NAME."""
    module, _, name = facts.origin.partition(":")
    return module != "__main__" and name.isidentifier()


def _is_swept(about: ResultsMetadata, on: str = "") -> bool:
    return any(facts.chosen_on and on in facts.chosen_on for facts in about.detectors)


def _rooted_sources(manifest: Manifest) -> list[str]:
    """Return the sources whose folders an evaluation reads."""
    names, known = sorted({row.source for row in manifest.groups}), source_names(manifest.datasets)
    return [name for name in names if name in known and source_class(name, manifest.datasets).rooted]


def placeholder(name: str) -> str:
    """Return SOURCE=SOURCE_ROOT, which stands for a source's folder in a command."""
    return f"{name}={re.sub(r'[^A-Z0-9]', '_', name.upper())}_ROOT"
