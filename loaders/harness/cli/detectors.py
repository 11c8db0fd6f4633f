"""The command ``unknown-eval detectors``: every detector with what it needs, and the presets."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from importlib.util import find_spec
from typing import Annotated, Any

import typer

from wordnet_splits.base.errors import unknown
from wordnet_splits.terminal.options import Json
from wordnet_splits.terminal.output import DONE, print_json, print_table, to_stdout

from ..detectors import DetectorSpec, get_spec, list_detectors, preset, preset_names
from ..detectors.parsing import presets_of
from ..detectors.pytorch_ood import PACKAGE, pytorch_ood_specs
from ..detectors.registry import SPLITS


def show_detectors(
    pattern: Annotated[str, typer.Argument(help="A name or wildcard pattern.")] = "*", json: Json = False
) -> int:
    """List detectors with their parameters and sweeps, what they need and fit on, and papers; and presets."""
    methods = _foreign(pattern) or [get_spec(name) for name in list_detectors(pattern)]
    if not methods:
        raise unknown("detector", pattern, list_detectors())
    presets = [preset(name) for name in preset_names()]
    if json:
        print_json(
            {
                "detectors": [_row(method) for method in methods],
                "presets": [
                    {
                        "name": p.name,
                        "paper": p.paper,
                        "detectors": p.detectors,
                        "absent": p.absent,
                        "sweep": _lists(p.sweep),
                    }
                    for p in presets
                ],
            }
        )
        return DONE
    print_table(
        ("detector", "also", "parameters", "sweep", "needs", "fits on", "presets", "paper", "what"),
        [
            (
                m.name,
                ", ".join(m.aliases) or None,
                ", ".join(f"{k}={v}" for k, v in m.parameters.items()) or None,
                ", ".join(f"{k}={'|'.join(f'{v:g}' for v in values)}" for k, values in m.sweep.items())
                or None,
                ", ".join(m.needs) or None,
                ", ".join(SPLITS[split] for split in m.splits) or None,
                ", ".join(presets_of(m)) or None,
                m.paper and f"{m.paper.authors.partition(',')[0]} {m.paper.year}",
                m.summary,
            )
            for m in methods
        ],
    )
    if pattern != "*":
        return DONE
    if find_spec(PACKAGE) is not None:
        to_stdout()
        to_stdout(f"pytorch-ood's that take logits or features: unknown-eval detectors '{PACKAGE}*'")
    to_stdout()
    print_table(
        ("preset", "detectors", "not built yet"),
        [(p.name, ", ".join(p.detectors), ", ".join(p.absent) or None) for p in presets],
    )
    return DONE


def _foreign(pattern: str) -> list[DetectorSpec]:
    """Return those of pytorch-ood that a pattern names; importing them takes seconds, so only if it does."""
    if not pattern.startswith(PACKAGE):
        return []
    return [method for method in pytorch_ood_specs() if fnmatchcase(method.name, pattern)]


def _row(method: DetectorSpec) -> dict[str, Any]:
    return {
        "name": method.name,
        "aliases": method.aliases,
        "parameters": dict(method.parameters),
        "needs": method.needs,
        "fit_on": method.splits,
        "sweep": {key: list(values) for key, values in method.sweep.items()},
        "models": method.models,
        "presets": presets_of(method),
        "summary": method.summary,
        "paper": str(method.paper) if method.paper else None,
    }


def _lists(sweep: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, list[Any]]]:
    return {name: {key: list(values) for key, values in grid.items()} for name, grid in sweep.items()}
