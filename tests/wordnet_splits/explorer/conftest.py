"""One site for all tests that only read it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.conftest import REPOSITORY, OnceForAllWorkers
from wordnet_splits.benchmark.manifest.tables import explanation_fingerprint
from wordnet_splits.benchmark.resolve import find_manifest
from wordnet_splits.explorer import make_site

NAMES = ("digits", "rungs-cifar100", "unknown-cifar-clean")
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="session")
def site(once_for_all_workers: OnceForAllWorkers) -> Path:
    """The site of three benchmarks, and of ``copied``, whose title and names are made to do harm."""
    return once_for_all_workers("site", write_site) / "pages"


def write_site(base: Path) -> None:
    """Write the site into ``base / "pages"``."""
    for name in NAMES:
        shutil.copytree(find_manifest(name), base / "manifests" / name)
    copied = shutil.copytree(find_manifest("digits"), base / "manifests" / "copied")
    table = pq.read_table(copied / "classes.parquet")
    for name in ("name", "evidence"):
        texts = [
            HOSTILE if text == "three" or "three is" in text else text for text in table[name].to_pylist()
        ]
        table = table.set_column(
            table.schema.get_field_index(name), table.schema.field(name), pa.array(texts)
        )
    pq.write_table(table, copied / "classes.parquet")
    about = json.loads((copied / "manifest.json").read_text("utf-8"))
    about["name"] = about["recipe"]["name"] = "copied"
    about["recipe"]["title"] = HOSTILE
    about["fingerprints"]["explanation"] = explanation_fingerprint(table)
    (copied / "manifest.json").write_text(json.dumps(about), "utf-8")
    entry = "rungs-cifar100-all"
    shutil.copytree(REPOSITORY / "manifests" / "results" / entry, base / "results" / entry)
    make_site(base / "pages", manifests=base / "manifests", results=base / "results")
