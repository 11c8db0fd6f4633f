"""Print the tests of the rooms that differ from a commit, for ``make quick``.

``python -m tests.touched [COMMIT]``; by default the last commit.
A room is a folder of a package with tests of its own, such as ``wordnet_splits/benchmark/rules``. Without a
difference the tests of recipes, rules, manifests and metrics are printed.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGES = ("wordnet_splits", "fix_resize", "loaders")
USUAL = ("base", "metrics", "benchmark/manifest", "benchmark/recipe", "benchmark/rules")


def changed_files(commit: str) -> list[str]:
    """Return the files that differ from a commit, those that git does not track yet included."""
    commands = (["diff", "--name-only", commit], ["ls-files", "--others", "--exclude-standard"])
    printed = [
        subprocess.run(["git", *words], cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout
        for words in commands
    ]
    return "".join(printed).splitlines()


def rooms_of_tests(files: Iterable[str]) -> list[str]:
    """Return the deepest folders of tests of some files of packages, and the files of tests themselves."""
    found = set()
    for file in files:
        path = Path(file)
        if path.parts[0] == "tests" and path.name.startswith("test_") and (REPOSITORY / path).exists():
            found.add(path)
        elif path.parts[0] in PACKAGES:
            folders = (Path("tests", folder) for folder in path.parents)
            found.add(next(folder for folder in folders if (REPOSITORY / folder).is_dir()))
    whole = {path for path in found if not found & {*path.parents}}
    return sorted(map(str, whole)) or [f"tests/wordnet_splits/{room}" for room in USUAL]


if __name__ == "__main__":
    print(*rooms_of_tests(changed_files(*sys.argv[1:2] or ["HEAD"])))
