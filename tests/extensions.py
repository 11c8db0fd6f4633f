"""Tests in a copy of the repository from which extensions were deleted: those that need them are skipped.

A test that imports a deleted extension is found by itself; a test that uses its commands or accessors has the
marker ``extensions(MODULE, ...)``.

``python -m tests.extensions DIR`` writes a copy without any extension and runs the tests of the core in it;
further arguments go to pytest.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
COPIED = (
    "README.md",
    "pyproject.toml",
    "docs",
    "fix_resize",
    "loaders",
    "manifests",
    "tests",
    "tools",
    "wordnet_splits",
)


def extensions() -> list[str]:
    """Return the modules that the contracts of ``pyproject.toml`` call extensions."""
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    named = [contract["modules"] for contract in settings["contracts"] if contract["type"] == "independence"]
    return [module for modules in named for module in modules]


def place(module: str, base: Path = REPOSITORY) -> Path:
    """Return the folder of a module."""
    return base.joinpath(*module.split("."))


DELETED = tuple(module for module in extensions() if not place(module).is_dir())


def imports(tree: ast.AST) -> Iterator[str]:
    """Yield the modules that a file imports outside functions."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def is_deleted(module: str) -> bool:
    """Return whether a module is in a deleted extension, or in its tests."""
    return any(f"{module.removeprefix('tests.')}.".startswith(f"{name}.") for name in DELETED)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out files that import a deleted extension."""
    if not DELETED or collection_path.suffix != ".py":
        return None
    tree = ast.parse(collection_path.read_text("utf-8"))
    return True if any(map(is_deleted, imports(tree))) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests whose marker names a deleted extension."""
    for item in items:
        for marker in item.iter_markers("extensions"):
            if deleted := [name for name in marker.args if is_deleted(name)]:
                item.add_marker(pytest.mark.skip(reason=f"{deleted[0]} was deleted"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None, None, None]:
    """Skip a test whose fixture imports a deleted extension."""
    yield from skipping()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, None, None]:
    """Skip a test that imports a deleted extension."""
    yield from skipping()


def skipping() -> Generator[None, None, None]:
    """Skip where a deleted extension is imported."""
    try:
        yield
    except ModuleNotFoundError as error:
        if is_deleted(error.name or ""):
            pytest.skip(f"{error.name} was deleted")
        raise


def main(words: Sequence[str]) -> int:
    """Run the tests of the core in a copy without extensions; return pytest's exit code."""
    folder, *options = words
    copy = Path(folder).absolute()
    shutil.rmtree(copy, ignore_errors=True)
    copy.mkdir(parents=True)
    for name in COPIED:
        source = REPOSITORY / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, copy / name)
    for module in extensions():
        for gone in (place(module, copy), place(f"tests.{module}", copy)):
            shutil.rmtree(gone, ignore_errors=True)
    tests = ["tests/wordnet_splits", "tests/loaders", "tests/fix_resize"]
    command = [sys.executable, "-P", "-m", "pytest", *options, *tests]
    return subprocess.run(
        command, cwd=copy, env={**os.environ, "PYTHONPATH": str(copy)}, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
