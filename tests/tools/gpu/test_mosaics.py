"""Packed images travel as mosaics, and arrive as the same bytes."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from tests.imported import Imported
from tests.raising import mentions, raises
from wordnet_splits.base.errors import DataError

mosaics = Imported("tools.gpu.mosaics")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    folder = tmp_path / "packed"
    images = np.zeros((403, 3, 32, 32), np.uint8)
    images[::100] = np.random.default_rng(0).integers(0, 256, (5, 3, 32, 32), np.uint8)
    parts = []
    for group, pixels in (("near", images), ("wide", images[:2].reshape(2, 3, 64, 16))):
        (folder / "test").mkdir(parents=True, exist_ok=True)
        (folder / "test" / f"{group}.bin").write_bytes(pixels.tobytes())
        (folder / "test" / f"{group}.arrow").write_bytes(b"rows")
        digest = hashlib.sha256(pixels.tobytes()).hexdigest()
        part = {"split": "test", "group": group, "shape": list(pixels.shape[1:])}
        parts.append({**part, "bytes": pixels.nbytes, "sha256": digest})
    (folder / "packed.json").write_text(json.dumps({"parts": parts}))
    return folder


def test_what_is_packed_comes_back(store: Path, tmp_path: Path) -> None:
    mosaics.pack(store, tmp_path / "mosaics")
    mosaics.unpack(tmp_path / "mosaics", tmp_path / "back")
    for name in ("packed.json", "test/near.bin", "test/near.arrow"):
        assert (tmp_path / "back" / name).read_bytes() == (store / name).read_bytes()
    assert not (tmp_path / "back/test/wide.bin").exists()


def test_a_store_without_such_images_is_one_line(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    listed = json.loads((store / "packed.json").read_text())
    (store / "packed.json").write_text(json.dumps({"parts": listed["parts"][1:]}))
    for source, message in ((store, "32"), (tmp_path / "none", "packed.json")):
        monkeypatch.setattr("sys.argv", ["mosaics", "pack", str(source), str(tmp_path / "mosaics")])
        with pytest.raises(SystemExit) as ended:
            mosaics.main()
        assert ended.value.code == 2
        assert mentions(capsys.readouterr().err.splitlines()[-1], message)
    assert not (tmp_path / "mosaics").exists()


def test_an_altered_mosaic_is_refused(store: Path, tmp_path: Path) -> None:
    mosaics.pack(store, tmp_path / "mosaics")
    listed = json.loads((store / "packed.json").read_text())
    listed["parts"][0]["sha256"] = "0" * 64
    (tmp_path / "mosaics/packed.json").write_text(json.dumps(listed))
    with raises(DataError, where="near.webps"):
        mosaics.unpack(tmp_path / "mosaics", tmp_path / "back")
