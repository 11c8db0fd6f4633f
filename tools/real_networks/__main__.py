"""Measure real networks for ``docs/evidence/real-networks.md`` and ``docs/real-networks.parquet``.

python -m tools.real_networks --data DIR [--work DIR] [--out docs] [--network NAME]
"""

from __future__ import annotations

import argparse
import json
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from time import process_time
from typing import Any

import pyarrow as pa
import torch
from PIL import Image

from loaders import UnknownDetectionSet
from loaders.harness import Results, evaluate, load_model
from tools.audits.page import filled
from wordnet_splits.base import files
from wordnet_splits.base.digests import draw_classes
from wordnet_splits.base.errors import SplitsError
from wordnet_splits.base.parquet import write_table
from wordnet_splits.benchmark.construct.run import build_benchmark
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.datasets.catalog import load_catalog

from .networks import check_accuracy, load_network, transform_of
from .page import CIFAR, DRAWS, IMAGENET, SCHEMA, Row, accuracy_row, correlation_rows, result_rows, tables

HERE = Path(__file__).parent
PLAN: Mapping[str, Any] = tomllib.loads((HERE / "studies.toml").read_text("utf-8"))


def class_ids(source: str) -> list[str]:
    """Return the classes of a source in its publisher's order."""
    return [each.class_id for each in load_catalog(source)]


def check_images(name: str, data: Path) -> list[tuple[Image.Image, int]]:
    """Return images that check a network: ID test images of CIFAR-10, or photographs of ImageNet train."""
    if name == CIFAR:
        roots = {"cifar10": data / PLAN["folders"]["cifar10"]}
        return list(UnknownDetectionSet("openood-cifar10-drawn", group="cifar10", split="test", roots=roots))
    folder = data / "imagenet" / "train"
    labels = {wnid: label for label, wnid in enumerate(class_ids("imagenet1k"))}
    return [
        (Image.open(file).convert("RGB"), labels[file.parent.name]) for file in sorted(folder.glob("*/*"))
    ]


def open_benchmark(study: Mapping[str, Any], folder: Path, roots: Mapping[str, Path]) -> Manifest:
    """Read a frozen benchmark, or build that of a recipe of this folder."""
    name = study["name"]
    if "recipe" not in study:
        return load_manifest(name)
    text = (HERE / study["recipe"]).read_text("utf-8").replace('name = "tiny-0"', f'name = "{name}"')
    for old, new in study.get("edits", {}).items():
        text = text.replace(old, new)
    ids = class_ids("tiny-imagenet")
    known = draw_classes("real-networks", study.get("seed", 0), "tiny-imagenet", ids, len(ids) // 2)
    recipe = folder / f"{name}.toml"
    files.write_text(recipe, text.replace('["KNOWN"]', json.dumps(sorted(known))))
    return build_benchmark(recipe, roots=roots, out=folder, allow_missing=True).manifest


def measured(data: Path, work: Path, names: list[str]) -> Iterator[Row]:
    """Check the networks, then yield the rows of all results; activations and results stay below ``work``."""
    roots = {source: data / folder for source, folder in PLAN["folders"].items()}
    networks = {name: load_network(name, work / "packages") for name in names}
    for name, network in networks.items():
        correct, images = check_accuracy(name, network, check_images(name, data))
        print(f"{name}: {correct:,} of {images:,} images are classified correctly", file=sys.stderr)
        yield accuracy_row("check", name, correct, images)
    draws: dict[str, list[tuple[Results, Manifest]]] = {name: [] for name in names}
    for study in PLAN["study"]:
        manifest = open_benchmark(study, work / "benchmarks", roots)
        for name in [name for name in study["networks"] if name in names]:
            folder, begin = work / "results" / study["name"] / name, process_time()
            if not (folder / "about.json").exists():
                model = load_model(
                    networks[name],
                    model_id=name,
                    mapping=None if name == CIFAR else class_ids("imagenet1k"),
                    preprocess=transform_of(name),
                    device="cpu",
                )
                evaluate(
                    model,
                    manifest,
                    ",".join(PLAN["detectors"][part] for part in study["detectors"]),
                    groups=study.get("groups"),
                    roots=roots,
                    allow_missing=True,
                    store=work / "activations",
                    batch_size=16,
                    progress=False,
                ).write(folder)
                print(f"{study['name']}, {name}: {process_time() - begin:.0f} s of a core", file=sys.stderr)
            results = Results.read(folder)
            if study["name"] not in DRAWS[1:]:
                yield from result_rows(study["name"], name, results)
            if study["name"] in DRAWS:
                draws[name].append((results, manifest))
    for name in set(IMAGENET) & set(names):
        yield from correlation_rows(name, draws[name])


def main() -> int:
    """Write the Parquet and the page's tables; 2 if a network or the data are not as expected."""
    parser = argparse.ArgumentParser(prog="python -m tools.real_networks")
    parser.add_argument("--data", type=Path, required=True, help="folder of the unpacked datasets")
    parser.add_argument(
        "--work", type=Path, default=Path("build/real-networks"), help="packages, activations, results"
    )
    parser.add_argument("--out", type=Path, default=Path("docs"), help="folder of evidence/real-networks.md")
    parser.add_argument(
        "--network", action="append", help="compute for this network alone, and write no page"
    )
    options = parser.parse_args()
    torch.set_num_threads(1)
    try:
        rows = list(measured(options.data, options.work, options.network or [CIFAR, *IMAGENET]))
    except SplitsError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if not options.network:
        rows.sort(key=lambda row: tuple(str(value) for value in row.values()))
        table = pa.Table.from_pylist(rows, SCHEMA)
        page = options.out / "evidence" / "real-networks.md"
        write_table(table, options.out / "real-networks.parquet")
        files.write_text(page, filled(page.read_text(encoding="utf-8"), tables(table)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
