"""The second step: the torch resizer on the device against NumPy's sums; every byte must be the same."""

from __future__ import annotations

import sys
import time
from functools import reduce

import numpy as np
import torch

from fix_resize import backend_torch, oracle
from fix_resize.spec import get_spec, plan
from tests.fix_resize.made_images import photo, random_cases, random_picture

from .figures import Figures, step_arguments

SPECS = ("fix", "fix-64", "fix-direct")
CASES, PICTURES = 5000, 24


def differing_in_cases(method: str, device: str, cases: int, ends: float) -> tuple[int, int, int]:
    """Return how many cases were compared by the time, and how many bytes there were and differed."""
    done = compared = differing = 0
    for case in random_cases(cases, seed=20):
        if time.monotonic() > ends:
            break
        step = backend_torch._on_device(case.step(), torch.device(device), method)
        planes = torch.from_numpy(case.picture)[None].to(device).permute(0, 3, 1, 2)
        out = backend_torch._resize_planes(planes, step).permute(0, 2, 3, 1)[0].cpu().numpy()
        expected = oracle.resample_step(case.picture, case.step())
        done, compared = done + 1, compared + out.size
        differing += int((out != expected).sum())
    return done, compared, differing


def differing_in_spec(
    name: str, method: backend_torch.ResizeMethod, device: str, pictures: np.ndarray
) -> int:
    """Return how many bytes of whole batches differ."""
    spec = get_spec(name)
    out = backend_torch.resize_batch(spec, torch.from_numpy(pictures).to(device), method).cpu().numpy()
    steps = plan(spec, *pictures.shape[1:3])
    expected = np.stack([reduce(oracle.resample_step, steps, picture) for picture in pictures])
    return int((out != expected).sum())


def main() -> int:
    """Compare; return 1 if a byte differs."""
    options = step_arguments("the torch resizer against NumPy").parse_args()
    ends, figures, wrong = time.monotonic() + 0.7 * options.seconds, Figures(options.figures), 0
    number = 2 if options.tiny else PICTURES
    rng = np.random.default_rng(21)
    batches = {
        "noise": np.stack([random_picture(rng, 90, 120, extremes=i % 2 == 0) for i in range(number)]),
        "made photographs": np.stack([photo(i) for i in range(number)]),
    }
    for method in sorted(backend_torch.METHODS):
        for name in SPECS:
            for kind, pictures in batches.items():
                differing = differing_in_spec(name, method, options.device, pictures)
                figures.add(f"{name} of {number} pictures of {kind}, {method}: differing bytes", differing)
                wrong += differing
    for method in sorted(backend_torch.METHODS):
        cases = 50 if options.tiny else CASES
        done, compared, differing = differing_in_cases(method, options.device, cases, ends)
        figures.add(f"{done:,} random cases, {compared:,} bytes, {method}: differing bytes", differing)
        wrong += differing
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
