"""`UnknownDetectionSet` in worker processes, forked and spawned, from roots and from packed stores."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="the datasets need torch (extra `torch`)")

import torch
from torch.utils.data import DataLoader

import wordnet_splits.torch
from loaders import UnknownDetectionSet
from tests.raising import raises
from wordnet_splits.base.errors import MissingImageError
from wordnet_splits.benchmark.images.pack import pack
from wordnet_splits.benchmark.resolve import load_manifest

pytestmark = pytest.mark.usefixtures("no_roots_of_this_machine")
REPOSITORY = Path(__file__).parents[2]


def small(image):
    """A transform that spawned workers can import."""
    return torch.from_numpy(np.array(image.resize((16, 16))))


def floats(images):
    return images.to(torch.float32).div(255)


@pytest.fixture(scope="module")
def packed(photographs, tmp_path_factory):
    root, manifest = photographs
    out = tmp_path_factory.mktemp("packed") / "store"
    pack(load_manifest(manifest), out, roots={"imagenet1k": root})
    return out


def items(data, **options):
    return [(x, y) for x, y in DataLoader(data, batch_size=3, **options)]


def same(a, b):
    return len(a) == len(b) and all(
        torch.equal(x, u) and torch.equal(y, v) for (x, y), (u, v) in zip(a, b, strict=True)
    )


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_workers_give_the_same_items_from_roots_and_from_a_store(photographs, packed, context):
    root, manifest = photographs
    read = UnknownDetectionSet(manifest, roots={"imagenet1k": root}, transform=small)
    stored = UnknownDetectionSet(manifest, packed=packed, transform=small)
    expected = items(read)
    assert same(items(stored), expected)
    workers = {"num_workers": 2 if context == "fork" else 1, "multiprocessing_context": context}
    together = items(Both(read, stored), **workers)
    for (x, y), (u, v) in zip(together, expected, strict=True):
        assert torch.equal(x[:, 0], u)
        assert torch.equal(x[:, 1], u)
        assert torch.equal(y, v)


class Both(torch.utils.data.Dataset):
    """Two datasets side by side, so that spawned workers start once."""

    def __init__(self, a, b):
        self.pair = (a, b)

    def __len__(self):
        return len(self.pair[0])

    def __getitem__(self, index):
        (x, label), (y, _) = (data[index] for data in self.pair)
        return torch.stack([x, y]), label


def test_whole_batches_come_back_from_workers(packed, photographs):
    data = UnknownDetectionSet("digits", batch_transform=floats)
    workers = {"num_workers": 2, "multiprocessing_context": "fork"}
    assert same(items(data, **workers), items(data))
    stored = UnknownDetectionSet(photographs[1], role="near", packed=packed, batch_transform=floats)
    assert same(items(stored, **workers), items(stored))


def test_a_worker_names_the_missing_image(photographs, tmp_path):
    from tests.photographs import TENCH, image_file, write_root

    root = write_root(tmp_path / "imagenet")
    image_file(root, TENCH, 3).unlink()
    data = UnknownDetectionSet(photographs[1], role="id", roots={"imagenet1k": root}, transform=small)
    with raises(MissingImageError, naming=(root, f"{TENCH}_5003")):
        items(data, num_workers=1, multiprocessing_context="fork")


# -- another `loaders` on the path ---------------------------------------------------------------------------


def python(code: str, path: Path) -> subprocess.CompletedProcess[str]:
    environment = {"PYTHONPATH": f"{path}:{REPOSITORY}", "PATH": ""}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=path, capture_output=True, text=True, check=False
    )


BEHIND = """
import pickle, subprocess, sys
import loaders
from wordnet_splits.torch import UnknownDetectionSet
held = pickle.dumps(UnknownDetectionSet("digits"))
here = pickle.loads(held)
there = "import pickle, sys; print(len(pickle.load(sys.stdin.buffer)))"
done = subprocess.run([sys.executable, "-c", there], input=held, capture_output=True, check=True)
print(loaders.__file__, len(here), int(done.stdout))
"""


def test_wordnet_splits_torch_has_it_whatever_loaders_is_in_front(tmp_path):
    assert wordnet_splits.torch.UnknownDetectionSet is UnknownDetectionSet
    (tmp_path / "loaders").mkdir()
    (tmp_path / "loaders" / "__init__.py").touch()
    behind = python(BEHIND, tmp_path)
    assert behind.stdout == f"{tmp_path / 'loaders' / '__init__.py'} 2074 2074\n", behind.stderr


def test_unknown_eval_runs_and_a_package_called_loaders_is_never_run(tmp_path):
    (tmp_path / "loaders.py").write_text("raise SystemExit('a stranger was imported')")
    code = "import sys; sys.argv = ['unknown-eval', 'list', 'detectors', 'kn*']; "
    found = python(code + "from wordnet_splits.torch import unknown_eval; unknown_eval()", tmp_path)
    assert found.returncode == 0, found.stderr
    assert "knn" in found.stdout


def test_torch_is_imported_on_request_only(tmp_path):
    code = (
        "import loaders, wordnet_splits, wordnet_splits.torch, wordnet_splits.benchmark.images.pack, sys;"
        "print('torch' in sys.modules)"
    )
    assert python(code, tmp_path).stdout == "False\n"


def test_there_is_nothing_else_in_wordnet_splits_torch():
    import wordnet_splits.torch

    with pytest.raises(AttributeError, match="Dataset"):
        _ = wordnet_splits.torch.Dataset
