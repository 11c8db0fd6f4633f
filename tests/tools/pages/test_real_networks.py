"""``docs/evidence/real-networks.md`` holds what its rows give; networks are checked before."""

from __future__ import annotations

import pickle
import re
from io import BytesIO
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy.stats import spearmanr

pytest.importorskip("torchvision")
from tools.audits.page import filled
from tools.real_networks.networks import Unpickler, check_accuracy, load_network
from tools.real_networks.page import DRAWS, IMAGENET, KEYS, mean_rho, tables
from wordnet_splits.base.errors import DataError

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "evidence" / "real-networks.md"
NAMES = ("abcdefghijklmnopqrstuvwxyz0123", "klmnopqrstuvwxyz0123456789ABCD")
ROWS = pq.read_table(ROOT / "docs" / "real-networks.parquet")


def test_the_page_holds_what_is_stored() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == filled(page, tables(ROWS))
    prose = "\n".join(line for line in page.splitlines() if not line.startswith("|"))
    cells = {cell.strip() for line in page.splitlines() if line.startswith("|") for cell in line.split("|")}
    for quoted in re.findall(r"-?\d+\.\d+ \(-?\d+\.\d+ to -?\d+\.\d+\)", prose):
        assert quoted in cells, "a conclusion quotes a figure that no table has"


def test_the_mean_over_draws_is_that_of_the_draws() -> None:
    rows = {tuple(row[key] for key in KEYS): row["value"] for row in ROWS.to_pylist()}
    for network in IMAGENET:
        for metric in ("rho_mean", "rho_wup_wn"):
            by_draw = [rows[draw, network, "energy", "near", metric] for draw in DRAWS]
            assert np.mean(by_draw) == pytest.approx(rows["tiny", network, "energy", "near", metric])


def test_rho_is_scipys_over_the_classes_of_each_draw() -> None:
    rng = np.random.default_rng(0)
    a, b = ([dict(zip(names, rng.random(30), strict=True)) for names in NAMES] for _ in range(2))
    of_draws = [
        spearmanr(*zip(*((p[k], q[k]) for k in p), strict=True)).statistic for p, q in zip(a, b, strict=True)
    ]
    value, lo, hi = mean_rho(a, b)
    assert value == pytest.approx(np.mean(of_draws))
    assert lo < value < hi


def test_only_arrays_are_unpickled() -> None:
    weights = {"conv": [np.eye(2, dtype=np.float32)]}
    assert np.array_equal(Unpickler(BytesIO(pickle.dumps(weights))).load()["conv"][0], np.eye(2))
    with pytest.raises(DataError):
        Unpickler(BytesIO(pickle.dumps(print))).load()


def test_other_weights_and_a_wrong_accuracy_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "ndf" / "example_models" / "weights" / "squeezenet_weights.pkl"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"altered")
    with pytest.raises(DataError) as refused:
        load_network("squeezenet", tmp_path)
    assert refused.value.where == str(file)
    with pytest.raises(DataError) as refused:
        check_accuracy("squeezenet", lambda _: None, [])
    assert refused.value.where == "squeezenet"
