"""What goes into the wheel, how large it is, and that the benchmarks in it are the checkout's."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zlib
from collections.abc import Iterable
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

import pytest

from wordnet_splits.benchmark.manifest import loading as folders
from wordnet_splits.benchmark.manifest import read_manifest
from wordnet_splits.benchmark.manifest.loading import manifest_names, whole_folder
from wordnet_splits.benchmark.manifest.parts import manifest_files
from wordnet_splits.benchmark.resolve import load_manifest

pytest.importorskip("hatchling", reason="hatchling, which builds the wheel, is not installed")
from tools.wheel import slim

REPOSITORY = Path(__file__).resolve().parent.parent
MANIFESTS = REPOSITORY / "manifests"
MiB = 1 << 20
BENCHMARKS = ("digits", "unknown-cifar-clean", "openood-cifar10", "osc-p1")


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the benchmarks as the wheel holds them."""
    return write_package(tmp_path_factory.mktemp("package"), manifest_names(MANIFESTS))


def write_package(out: Path, benchmarks: Iterable[str]) -> Path:
    """Write some benchmarks as the wheel holds them."""
    names = {name for benchmark in benchmarks for name in _files(benchmark)}
    for path, name in slim({MANIFESTS / name: name for name in names}, out).items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        if path != out / name:
            (out / name).unlink(missing_ok=True)
            (out / name).hardlink_to(path)
    return out


def _files(benchmark: str) -> list[Path]:
    return [Path(benchmark) / name for name in manifest_files(read_manifest(MANIFESTS / benchmark).data)]


HOOK = """
import sys
from pathlib import Path

root, out = map(Path, sys.argv[1:3])

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in sys.argv[3:]:
            raise ModuleNotFoundError(f"no module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
sys.path.insert(0, str(root))
from tools.wheel import slim

files = (path for name in ("digits", "osc-p1") for path in (root / "manifests" / name).rglob("*"))
assert slim({path: path.relative_to(root / "manifests") for path in files if path.is_file()}, out)
"""


def test_the_build_hook_imports_no_more_than_the_build_requirements(tmp_path: Path) -> None:
    system = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["build-system"]
    needed, left = set(), [*system["requires"]]
    while left:
        name = _distribution(left.pop())
        if name not in needed:
            needed.add(name)
            with suppress(PackageNotFoundError):  # of another platform or Python
                left += [text for text in requires(name) or () if "extra ==" not in text]
    absent = [
        module
        for module, distributions in packages_distributions().items()
        if module.isidentifier() and not needed.intersection(map(_distribution, distributions))
    ]
    absent = [module for module in absent if not (REPOSITORY / module).exists()]
    assert "typer" in absent
    subprocess.run([sys.executable, "-c", HOOK, REPOSITORY, tmp_path, *absent], cwd=tmp_path, check=True)


def _distribution(requirement: str) -> str:
    """Return the normalised name of a distribution or requirement."""
    return re.split(r"[^\w.-]", requirement)[0].lower().replace("_", "-")


@pytest.mark.oracle
def test_the_wheel_stays_small(package: Path) -> None:
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]
    only = settings["wheel"]["only-include"]
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", *only], cwd=REPOSITORY, capture_output=True, check=True
    )
    code = [REPOSITORY / name for name in listed.stdout.decode().split("\0") if name]
    files = [*(path for path in code if path.is_file()), *(p for p in package.rglob("*") if p.is_file())]
    assert sum(len(zlib.compress(path.read_bytes())) for path in files) <= 30 * MiB


@pytest.mark.oracle
def test_it_holds_data_and_no_results(package: Path) -> None:
    assert (package / "digits" / "manifest.json").is_file()
    assert not (package / "results").exists()
    assert set(manifest_names(package)) == set(manifest_names(MANIFESTS))


@pytest.mark.oracle
@pytest.mark.parametrize("name", BENCHMARKS)
def test_benchmarks_in_the_wheel_are_the_same(
    package: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_same_in_package(package, name, monkeypatch)


def test_benchmarks_that_share_tables_are_the_same_in_a_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("unknown-cifar", "unknown-cifar-clean")
    assert_same_in_package(write_package(tmp_path, names), names[1], monkeypatch)


def assert_same_in_package(package: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    manifest = load_manifest(name, package)  # every fingerprint is recomputed, pixels among them
    assert manifest.images().equals(load_manifest(name, MANIFESTS).images())
    monkeypatch.setattr(folders, "shipped_folders", lambda: (package,))
    copy = whole_folder(manifest)
    for part in manifest.parts:
        path = Path("images", part[0], f"{part[1]}.parquet")
        assert "digest" in folders.read_table(copy / path).column_names  # type: ignore[attr-defined]
    assert read_manifest(copy, check="all").fingerprint == manifest.fingerprint
    assert whole_folder(read_manifest(MANIFESTS / name)) == MANIFESTS / name
