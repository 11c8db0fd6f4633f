"""Results as the Hugging Face Hub reads them in a model's repository."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from math import isfinite
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.files import write_text
from wordnet_splits.base.lazy import need
from wordnet_splits.hub.address import Address, parse_address
from wordnet_splits.leaderboard import HUB_METRIC, HUB_ROLES, hub_task

from ..comparison.entries import NamedResults

EVAL_RESULTS: Final = ".eval_results"
MODEL_INDEX: Final = "model-index.yaml"
MEAN: Final = "(mean)"
"""Group of the rows that are means over the sets of a role."""


def write_hub_results(results: NamedResults, hub: str, folder: Path, *, url: str = "") -> list[Path]:
    """Write what the Hub shows on the page of a model; return the files.

    ``.eval_results/BENCHMARK-DETECTOR.yaml`` has the AUROC of near and of far sets, each the mean over the
    sets and over the runs of the model. ``model-index.yaml`` has the same, to be put into the metadata of
    the model's ``README.md``.

    Parameters
    ----------
    hub : the dataset repository with the benchmark, ``ORG/NAME``.
    folder : of the model's repository.
    url : of a paper or of code, named as the source.

    Raises
    ------
    DataError : the results are of several models, or have no AUROC of a near or far set.
    """
    address = parse_address(hub, where="hub")
    if address != Address(address.repo):
        raise DataError("expected a repository alone, without tag or benchmark", where=hub, hint="ORG/NAME")
    about = results.results.about
    if len(about.models) > 1:
        raise DataError(
            f"the results are of {len(about.models)} models, and a repository of the Hub is one model's",
            where=results.name,
            hint="evaluate and submit each model by itself",
        )
    values = list(_values(results))
    if not values:
        raise DataError(
            "there is no AUROC of a near or far set", where=results.name, hint="evaluate with detectors"
        )
    runs = f"mean of {len(about.runs)} runs" if len(about.runs) > 1 else "one run"
    suffix = f"{runs}, version {about.version}, wordnet-splits {version('wordnet-splits')}"
    texts = {}
    for detector in dict.fromkeys(detector for detector, _, _ in values):
        slug = re.sub(r"[^a-z0-9]+", "-", detector.lower()).strip("-")
        entries = [
            {
                "dataset": {"id": address.repo, "task_id": hub_task(about.benchmark, role)},
                "value": value,
                **({"source": {"url": url}} if url else {}),
                "notes": f"detector {detector}, {suffix}",
            }
            for name, role, value in values
            if name == detector
        ]
        path = f"{EVAL_RESULTS}/{about.benchmark}-{slug}.yaml"
        if path in texts:
            raise DataError(
                f"two detectors would be written to {path}", where=results.name, hint="leave one out"
            )
        texts[path] = _yaml(entries)
    index = {"name": about.models[0], "results": _index(values, address.repo, about.benchmark)}
    texts[MODEL_INDEX] = _yaml({"model-index": [index]})
    for path, text in texts.items():
        write_text(folder / path, text)
    return [folder / path for path in texts]


def _values(results: NamedResults) -> Iterator[tuple[str, str, float]]:
    """Yield detector, role and the mean over the runs, in the order of the results."""
    runs: dict[tuple[str, str], list[float]] = {}
    for (detector, _, metric, group, role), values in results.values.items():
        if (metric, group) == (HUB_METRIC, MEAN) and role in HUB_ROLES:
            runs.setdefault((detector, role), []).extend(values)
    for (detector, role), values in runs.items():
        if all(map(isfinite, values)):
            yield detector, role, fmean(values)


def _index(values: Sequence[tuple[str, str, float]], repo: str, benchmark: str) -> list[dict[str, Any]]:
    return [
        {
            "task": {"type": "image-classification", "name": "Out-of-distribution detection"},
            "dataset": {
                "type": repo,
                "name": f"{benchmark}, {role} sets",
                "config": benchmark,
                "split": "test",
            },
            "metrics": [
                {"type": "roc_auc", "value": value, "name": f"AUROC of {name}"}
                for name, other, value in values
                if other == role
            ],
        }
        for role in dict.fromkeys(role for _, role, _ in values)
    ]


def _yaml(value: object) -> str:
    yaml = need("yaml", "hub", where=EVAL_RESULTS)
    return str(yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=1000))
