"""The command ``list detectors``: every detector with its inputs, and the presets."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from importlib.util import find_spec
from typing import Annotated, Any

import typer

from wordnet_splits.base.errors import unknown
from wordnet_splits.base.terminal.options import Json
from wordnet_splits.base.terminal.output import DONE, print_result, print_table, to_stdout

from ..detectors import DETECTORS, DetectorSpec, Preset, get_preset, list_detectors, preset_names
from ..detectors.parsing import presets_of
from ..detectors.pytorch_ood import PACKAGE, pytorch_ood_specs
from ..detectors.registry import SPLITS
from .main import app

app.group("list", "Detectors, and training recipes.", heading="Evaluate")


@app.command(
    "list detectors",
    examples=[
        "unknown-eval list detectors",
        "unknown-eval list detectors 'm*' --json",
    ],
)
def show_detectors(
    pattern: Annotated[str, typer.Argument(help="A name or wildcard pattern.")] = "*", json: Json = False
) -> int:
    """List detectors with their inputs, fitting splits and parameters; and presets."""
    specs = _pytorch_ood_specs(pattern) or list(DETECTORS.entries(pattern.lower()).values())
    if not specs:
        raise unknown("detector", pattern, list_detectors())
    presets = [get_preset(name) for name in preset_names()]
    result = {"detectors": [_row(spec) for spec in specs], "presets": [p.as_dict() for p in presets]}
    print_result(result, json, lambda: _print_detectors(specs, presets if pattern == "*" else ()))
    return DONE


def _print_detectors(specs: Sequence[DetectorSpec], presets: Sequence[Preset]) -> None:
    """Print a table of detectors and, if there are any, one of presets."""
    print_table(
        ("detector", "needs", "fits on", "parameters", "summary"),
        [
            (
                ", ".join([spec.name, *spec.aliases]),
                ", ".join(spec.needs) or None,
                ", ".join(SPLITS[split] for split in spec.splits) or None,
                ", ".join(f"{name}={value}" for name, value in spec.parameters.items()) or None,
                spec.summary,
            )
            for spec in specs
        ],
    )
    if not presets:
        return
    if find_spec(PACKAGE) is not None:
        to_stdout()
        to_stdout(f"pytorch-ood's that take logits or features: unknown-eval list detectors '{PACKAGE}*'")
    to_stdout()
    print_table(
        ("preset", "detectors", "not built yet"),
        [(p.name, ", ".join(p.detectors), ", ".join(p.absent) or None) for p in presets],
    )


def _pytorch_ood_specs(pattern: str) -> list[DetectorSpec]:
    """Return the matching detectors of pytorch-ood, whose import takes seconds, if the pattern names them."""
    if not pattern.startswith(PACKAGE):
        return []
    return [spec for spec in pytorch_ood_specs() if fnmatchcase(spec.name, pattern)]


def _row(spec: DetectorSpec) -> dict[str, Any]:
    return {
        "name": spec.name,
        "aliases": spec.aliases,
        "parameters": dict(spec.parameters),
        "needs": spec.needs,
        "fit_on": spec.splits,
        "sweep": dict(spec.sweep),
        "models": spec.models,
        "presets": presets_of(spec),
        "summary": spec.summary,
        "paper": str(spec.paper) if spec.paper else None,
    }
