"""``make gpu``: on a machine with an accelerator, in ten minutes at most: tests, exactness, benches, table 6.

python -m tools.gpu [--out DIR] [--budget SECONDS] [--packed DIR ...] [--clip DIR] [--benchmark NAME]

Steps that are done in DIR are not repeated; one that was killed goes on. Exit code 0: all done; 1: a step
failed; 2: no GPU; 3: a step was skipped or stopped for lack of time.
"""

from __future__ import annotations

import argparse
import platform
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tools.gpu.running import Step, exit_code, run_steps
from wordnet_splits.base import files
from wordnet_splits.base.errors import SplitsError

BUDGET = 570.0
BENCHMARK, TINY = "unknown-cifar-tinyval", "digits"


def steps(device: str, benchmark: str, packed: list[Path], out: Path, clip: Path | None = None) -> list[Step]:
    """Return the steps in order; on a CPU the same on next to nothing."""
    tiny = device == "cpu"

    def command(module: str, *arguments: str) -> tuple[str, ...]:
        words = ["-m", f"tools.gpu.{module}", "--device", device]
        words += ["--seconds", "{seconds}", "--figures", "{figures}"]
        return (*words, *(["--tiny"] if tiny else []), *arguments)

    least = 1.0 if tiny else 20.0
    plan = [
        Step("tests", "CUDA tests" if not tiny else "tests", command("cuda_tests"), 0.2, least),
        Step("exactness", "the torch resizer against NumPy", command("exactness"), 0.15, least),
        Step("benches", "benches", command("benches"), 0.3, least),
    ]
    if clip is not None:
        words = ["--clip", str(clip), "--benchmark", benchmark if packed else TINY]
        words += [word for folder in packed for word in ("--packed", str(folder))]
        plan.append(Step("zero-shot", "a zero-shot model", command("zero_shot", *words), 0.3, least))
    if packed or tiny:
        words = ["--benchmark", benchmark, "--work", str(out / "work")]
        words += ["--results", str(out / "results.tar")]
        words += [word for folder in packed for word in ("--packed", str(folder))]
        plan.append(Step("table6", "Kim et al., table 6", command("table6", *words), 1.0, 3 * least))
    return plan


def machine_of(device: str, benchmark: str) -> dict[str, Any]:
    """Return the hardware, versions, benchmark and commit that the results depend on."""
    import numpy
    import torch

    machine = {
        "device": torch.cuda.get_device_name(device) if device != "cpu" else "cpu",
        "processor": platform.machine(),
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "numpy": numpy.__version__,
        "cuda": str(torch.version.cuda),
        "cudnn": str(torch.backends.cudnn.version()),
        "benchmark": benchmark,
    }
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    return {**machine, "commit": commit.stdout.strip() or "not known"}


def has_gpu() -> bool:
    """Whether torch is installed and sees a GPU."""
    if find_spec("torch") is None:
        return False
    import torch

    return bool(torch.cuda.is_available())


def main(arguments: list[str]) -> int:
    """Run the steps and print the folder of the results."""
    parser = argparse.ArgumentParser(prog="python -m tools.gpu")
    parser.add_argument("--out", type=Path, default=Path("build/gpu"))
    parser.add_argument("--budget", type=float, default=BUDGET)
    parser.add_argument("--packed", type=Path, action="append", default=[])
    parser.add_argument("--clip", type=Path, help="folder of a CLIP model, for the step zero-shot")
    parser.add_argument("--benchmark")
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args(arguments)
    if options.device != "cpu" and not has_gpu():
        print("make gpu: no GPU here (or PyTorch has no CUDA); nothing was run", file=sys.stderr)
        return 2
    benchmark = options.benchmark or (TINY if options.device == "cpu" else BENCHMARK)
    try:
        with files.locked(options.out, busy="another `make gpu` is writing here"):
            records = run_steps(
                steps(options.device, benchmark, options.packed, options.out, options.clip),
                options.out,
                options.budget,
                machine_of(options.device, benchmark),
                say=lambda text: print(text, flush=True),
            )
    except SplitsError as error:
        print(f"make gpu: {error}", file=sys.stderr)
        return 2
    if not options.packed and options.device != "cpu":
        print("table 6 is not among the steps: name packed images with PACKED=DIR (docs/computing.md)")
    print(f"summary: {options.out / 'summary.md'}")
    return exit_code(records)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
