"""How to repeat the numbers of a report: commands, software, seeds, fingerprints, licences and citations."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from wordnet_splits.base.digests import digest_json
from wordnet_splits.base.errors import SplitsError
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.datasets.sources import source_class, source_info
from wordnet_splits.datasets.sources.citation import citation_of

from ..comparison.entries import Draw, NamedResults
from ..detectors.openood import OPENOOD
from ..evaluation.schema import MODEL, About, MetricFacts, MissingSet, RunFacts
from ..evaluation.sets import NOT_CHOSEN
from ..evaluation.sweeps import params_of
from ..evaluation.table import NOTHING, Table
from ..plugins import IN_ARRAYS

TRAINED, PUBLISHED, FILE = "trained:", "published, ", "file "
"""Beginnings of the recorded origin of weights."""
EVALUATION = re.compile(r"evaluation (?P<name>\S+), mean (?P<mean>[^,]+), std (?P<std>[^,]+)")
FUNCTION = re.compile(r"transform_id (?P<name>[\w.]+:\w+) [0-9a-f]{12}")
"""Recorded words of a named transform, and of a function MODULE:NAME."""
WITH_TRANSFORM = ("timm:", "torchvision:", "hf:")
"""Sources of models that bring a transform."""
REBUILT = (
    "Rebuilt from what the results record, without options of models such as --mapping. Replace the words in "
    "capitals: SOURCE_ROOT is the folder of a dataset (a store of `wordnet-splits pack`, --packed PACKED, "
    "takes the place of all), WEIGHTS the folder of a file of weights."
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
    trained = _are_trained(about)
    if all(run.weights == IN_ARRAYS for run in about.runs):
        words += ["--arrays", "DIR", "--model-id", about.models[0]]
    else:
        words += [word for run in about.runs for word in ("--model", _model(run))]
        files = [run.weights for run in about.runs if run.weights.startswith(FILE)]
        words += [word for file in files for word in ("--weights", f"WEIGHTS/{Path(file).name}")]
        words += [
            word for name in _sources(about) for word in ("--root", f"{name}={_placeholder(name)}_ROOT")
        ]
        for name, value in _transform(evaluation).items():
            words += [f"--{name}={value}"] if value.startswith("-") else [f"--{name}", value]
    words += ["--runs"] if not trained and len(about.models) == 1 < len(about.runs) else []
    words += ["--detectors", _detectors(evaluation)]
    words += ["--sweep"] if _is_swept(evaluation) else []
    if about.options.replicates:
        words += ["--bootstrap", str(about.options.replicates), "--seed-boot", str(about.options.seed)]
    words += [word for facts in about.metrics if _has_path(facts) for word in ("--metric", facts.origin)]
    words += ["--allow-missing"] if about.left_out else []
    return shlex.join(words)


def _are_trained(about: About) -> bool:
    """Return whether every run is of `train`, whose ``model.json`` states the normalisation."""
    return all(run.weights.startswith(TRAINED) for run in about.runs)


def _transform(evaluation: NamedResults) -> dict[str, str]:
    """Return transform, mean and std of an evaluation where they are not the model's or the benchmark's own.

    A transform whose recorded words, which have six digits, do not give its key is left out.
    """
    about = evaluation.results.about
    transforms = {key: words for run in about.runs for key, words in run.transforms.items()}
    functions = {match["name"] if (match := FUNCTION.fullmatch(w)) else "" for w in transforms.values()}
    if len(functions) == 1 and "" not in functions:
        return {"transform": functions.pop()}
    names, normalisations = set(), set()
    for key, words in transforms.items():
        match = EVALUATION.fullmatch(words)
        spec: dict[str, Any] = dict(match.groupdict()) if match else {}
        numbers = {part: [float(number) for number in spec[part].split()] for part in spec if part != "name"}
        if match is None or digest_json({"evaluation": match["name"], **numbers}) != key:
            return {}
        names.add(match["name"])
        normalisations.add((match["mean"], match["std"]))
    if len(normalisations) != 1:
        return {}
    declared_names, declared = _declared_transforms(evaluation)
    own_transform = any(run.name.startswith(WITH_TRANSFORM) for run in about.runs)
    options = (
        {"transform": names.pop()} if len(names) == 1 and (own_transform or names != declared_names) else {}
    )
    (normalisation,) = normalisations
    if normalisation != declared and not (declared is None and _are_trained(about)):
        options |= {part: _channels(text) for part, text in zip(("mean", "std"), normalisation, strict=True)}
    return options


def _declared_transforms(evaluation: NamedResults) -> tuple[set[str], tuple[str, str] | None]:
    """Return the benchmark's transforms of the sets scored, and its mean and std, None where unknown."""
    results = evaluation.results
    try:
        manifest = load_manifest(results.about.benchmark)
    except SplitsError:
        return set(), None
    recipe, groups = (
        manifest.data.recipe,
        {*results.about.composition.sets, *results.results["group"].to_pylist()},
    )
    sources = {row.source for row in manifest.groups if row.split == "test" and row.group in groups}
    names = {recipe.transforms.get(source, "none") for source in sources}
    if recipe.normalise is None:
        return names, None
    mean, std = (
        " ".join(f"{number:.6g}" for number in numbers)
        for numbers in (recipe.normalise.mean, recipe.normalise.sd)
    )
    return names, (mean, std)


def _channels(text: str) -> str:
    """Return recorded numbers, one for each channel, as an option takes them."""
    numbers = text.split()
    return numbers[0] if len(set(numbers)) == 1 else ",".join(numbers)


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
    names = sorted({row.source for row in manifest.groups})
    return [name for name in names if source_class(name, manifest.datasets).rooted]


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
    arguments += [f"{name}={value!r}" for name, value in _transform(evaluation).items()]
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


ORDER = ("date", "wordnet-splits", "commit", "python", "torch")
UNRECORDED = "not recorded: evaluated before results kept it"
_SEED = re.compile(r"-s(\d+)$")


def environment_table(draw: Draw) -> Table:
    """Return the software, devices and seeds of each evaluation, a column for each."""
    facts = [_facts(evaluation.results.about) for evaluation in draw.results]
    named = dict.fromkeys(name for each in facts for name in each)
    first = [name for name in ORDER if name in named]
    rows = tuple(
        (name, *(each.get(name, NOTHING) for each in facts)) for name in dict.fromkeys((*first, *named))
    )
    titles = [evaluation.name for evaluation in draw.results] if len(facts) > 1 else ["value"]
    return Table("Software, devices and seeds", ("", *titles), rows)


def _facts(about: About) -> dict[str, str]:
    facts = dict(about.software) or dict.fromkeys(ORDER, UNRECORDED)
    devices = ", ".join(dict.fromkeys(run.device for run in about.runs if run.device))
    facts["device"] = devices or "none: arrays that were computed elsewhere"
    seeds = [match[1] for run in about.runs if (match := _SEED.search(run.name))]
    facts["training seeds"] = ", ".join(dict.fromkeys(seeds)) or "not recorded"
    options = about.options
    facts["bootstrap"] = (
        f"{options.replicates:,} replicates, seed {options.seed}" if options.replicates else "none"
    )
    return facts


def fingerprints_table(draw: Draw) -> Table:
    """Return the fingerprints that two evaluations of one benchmark share."""
    about = draw.first.about
    rows = [("version", str(about.version))]
    rows += [(name, value or "none: a source is awaited") for name, value in _fingerprints(about).items()]
    return Table(f"Fingerprints of {about.benchmark}", ("", "value"), tuple(rows))


def _fingerprints(about: About) -> Mapping[str, str | None]:
    """Return the fingerprints; that of carried sources only where there are any."""
    return {n: value for n, value in about.fingerprints.items() if value or n != "sources"}


def missing_lines(draw: Draw) -> Iterator[str]:
    """Yield a sentence on every set that was not scored whole, or that nothing is missing."""
    lines = [
        f"{row.group} ({row.role}): {_scored(row)}{row.status}."
        for evaluation in draw.results
        for row in evaluation.results.about.missing
    ]
    yield from dict.fromkeys(lines or ["Nothing: every ID, near and far image was scored."])


def _scored(row: MissingSet) -> str:
    if row.status == NOT_CHOSEN:
        return ""
    expected = "an unknown number of" if row.expected is None else f"{row.expected:,}"
    return f"{row.scored:,} of {expected} images scored, "


def licences_table(manifest: Manifest) -> Table:
    """Return the sources with images in a benchmark, and their licences."""
    groups: dict[str, dict[str, None]] = {}
    for row in manifest.groups:
        if row.split != "classes":
            groups.setdefault(row.source, {})[row.group] = None
    rows = []
    for name, of_source in sorted(groups.items()):
        info = source_info(name, manifest.datasets)
        rows.append((name, info.title, ", ".join(of_source), info.licence or "not stated", info.url))
    return Table("Sources of the images", ("source", "title", "sets", "licence", "address"), tuple(rows))


def bibtex_of(manifest: Manifest) -> str:
    """Return the BibTeX entries of a benchmark, the sources of its images and this program."""
    sources = sorted({row.source for row in manifest.groups})
    return citation_of(manifest.name, manifest.data.recipe.paper, sources, manifest.declarations).bibtex


def manifest_of(draw: Draw) -> tuple[Manifest | None, str]:
    """Return the benchmark, or None and a sentence that says why it is not here."""
    try:
        return draw.manifest(), ""
    except SplitsError as error:
        return None, f"Licences and citations are not shown: {error}"
