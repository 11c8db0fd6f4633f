"""``make dist``: wheel and sdist, built, installed into fresh environments and run outside the checkout.

python -m tools.release [--out DIR]
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
LARGEST_WHEEL = 31 << 20
QUESTION = ("explain", "unknown-imagenet", "axolotl")
ANSWER = "axolotl"
LOADS = (
    "import loaders; from wordnet_splits.torch import UnknownDetectionSet as D; "
    "assert loaders.STRANGER; print(len(D('digits', split='test')), 'images of digits')"
)


def main() -> int:
    """Build, install and run; return 1 if a package is too large or does not run."""
    parser = argparse.ArgumentParser(prog="python -m tools.release")
    parser.add_argument("--out", type=Path, default=Path("build/dist"), help="folder of wheel and sdist")
    out = parser.parse_args().out.resolve()
    shutil.rmtree(out, ignore_errors=True)
    try:
        run(
            [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(REPOSITORY)],
            REPOSITORY,
        )
        with tempfile.TemporaryDirectory() as place:
            return check(out, Path(place))
    except subprocess.CalledProcessError as error:
        print(f"{error}\n{error.stdout}\n{error.stderr}", file=sys.stderr)
        return 1


def check(out: Path, place: Path) -> int:
    """Run the built packages in ``place``; print a line a step."""
    (wheel,), (sdist,) = out.glob("*.whl"), out.glob("*.tar.gz")
    sizes = {file.suffix: file.stat().st_size for file in (wheel, sdist)}
    for file in (wheel, sdist):
        print(f"{file.name}: {file.stat().st_size / (1 << 20):.2f} MiB")

    started = time.monotonic()
    program = install(wheel, place / "wheel")
    installed = time.monotonic() - started
    answer = run([str(program), *QUESTION], place)
    first = time.monotonic() - started
    print(f"pip install of the wheel {installed:.0f} s, to the first `explain` {first:.0f} s")
    assert ANSWER in answer, answer
    print(run([str(program), "verify", "--all"], place).splitlines()[-1])

    (place / "stranger" / "loaders").mkdir(parents=True)
    (place / "stranger" / "loaders" / "__init__.py").write_text("STRANGER = True\n")
    libraries = sysconfig.get_path("purelib")  # torch, not the checkout: its .pth is not read from here
    behind = {"PYTHONPATH": os.pathsep.join([str(place / "stranger"), libraries])}
    python = program.with_name("python")
    print("behind a stranger's loaders:", run([str(python), "-c", LOADS], place, behind).strip())

    other = install(sdist, place / "sdist")
    assert run([str(other), *QUESTION], place) == answer
    print("the sdist, installed, gives the same answer")
    uvx = [sys.executable, "-m", "uv", "tool", "run", "--from", str(wheel), "wordnet-splits", *QUESTION]
    assert run(uvx, place) == answer
    print(f"uvx --from {wheel.name} wordnet-splits {' '.join(QUESTION)}: the same answer")
    return int(sizes[".whl"] > LARGEST_WHEEL)


def install(package: Path, folder: Path) -> Path:
    """Install a package into a fresh environment and return its program."""
    run([sys.executable, "-m", "venv", str(folder)], folder.parent)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run([*pip, str(package)], folder.parent)
    return folder / "bin" / "wordnet-splits"


def run(words: Sequence[str], place: Path, extra: Mapping[str, str] | None = None) -> str:
    """Run a command in a folder, without PYTHON* and WORDNET* variables, and return its output."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "WORDNET"))}
    done = subprocess.run(
        words, cwd=place, env={**clean, **(extra or {})}, capture_output=True, text=True, check=True
    )
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
