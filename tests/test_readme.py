"""The Python and the recipe of the README and of pages without a test of their own work as pasted."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import wordnet_splits
from tests.selection import cases
from wordnet_splits.benchmark.construct import build_benchmark
from wordnet_splits.datasets.catalog.own_hierarchy import OwnHierarchy

REPOSITORY = Path(__file__).resolve().parent.parent
DOCS = REPOSITORY / "docs"
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")


def blocks(page: Path, language: str = "python") -> list[str]:
    """Return the code blocks of a page, without its generated parts, whose signatures do not run."""
    written = re.sub(
        r"<!-- generated: .*?<!-- end -->", "", page.read_text(encoding="utf-8"), flags=re.DOTALL
    )
    return re.findall(rf"```{language}\n(.*?)```", written, re.DOTALL)


def page_of(name: str) -> Path:
    return REPOSITORY / name if name == "README.md" else DOCS / name


PAGES = {
    page.name: blocks(page)
    for page in (
        REPOSITORY / "README.md",
        *(DOCS / f"{n}.md" for n in ("index", "concepts", "audits")),
    )
}


@pytest.mark.docs
@pytest.mark.parametrize("page", cases(PAGES, always="concepts.md"))
def test_python_runs_as_pasted_and_prints_what_it_says(tmp_path, page):
    code = "\n".join(PAGES[page])
    if "torch" in code:
        pytest.importorskip("torch", reason="the loaders need torch")
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    shown = re.findall(r"^print\(.*\)  # (True|n?\d.*|[\[{].*)$", code, re.MULTILINE)
    assert {*shown} <= {*said}
    if "print(results)" in code:
        columns, _, *rows = said[next(n for n, line in enumerate(said) if line.startswith("detector")) :]
        assert columns.split()[:3] == ["detector", "ACC", "AURC+OOD"]
        assert [row.split()[0] for row in rows[:3]] == ["msp", "energy", "knn[k=10]"]
    for table in blocks(page_of(page), "text"):  # printed below the call
        assert table in done.stdout


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "manifests/results/README.md"])
def test_what_is_linked_is_there(page):
    file = REPOSITORY / page
    links = re.findall(r"\]\((?!https?:)([^)#]+)", file.read_text(encoding="utf-8"))
    assert links
    assert [link for link in links if not (file.parent / link).exists()] == []


def test_the_recipe_builds(tmp_path):
    recipe, hierarchy, about = blocks(DOCS / "recipes.md", "toml")
    (table,) = tomllib.loads(hierarchy).values()
    assert table.keys() == OwnHierarchy.model_validate(table).model_fields_set
    path = tmp_path / "my.toml"
    path.write_text(recipe + about, encoding="utf-8")
    manifest = build_benchmark(path).manifest
    counts = {g.group: g.actual for g in manifest.groups if g.split == "test"}
    assert counts == {"cats": 100, "kin": 60}
    assert manifest.data.about.absent == []


@pytest.mark.docs
def test_every_public_name_has_an_example_that_runs(tmp_path):
    code = "\n".join(blocks(DOCS / "reference" / "python.md"))
    assert set(re.findall(r"\bws\.([A-Za-z_]+)", code)) == set(dir(wordnet_splits))
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "did you mean 'axolotl.n.01'?" in done.stdout


def test_the_shell_that_ran_make_run_finds_the_programs(tmp_path):
    (first,) = re.findall(r"```sh\n(make run.*?)```", README, re.DOTALL)
    assert ". .venv/bin/activate" in first
    for target, said in (("shell", "PATH="), ("demo", "to download")):
        done = subprocess.run(
            ["make", "-n", target, f"VENV={tmp_path / 'fresh'}"],  # where nothing is installed yet
            capture_output=True,
            text=True,
            cwd=REPOSITORY,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert said in done.stdout


SHOWN = {
    "Catalog": lambda: wordnet_splits.load_catalog("imagenet1k"),
    "Manifest": lambda: wordnet_splits.load_manifest("unknown-imagenet"),
    "Recipe": lambda: wordnet_splits.load_recipe("unknown-imagenet"),
    "Taxonomy": wordnet_splits.Taxonomy.embedded,
}


@pytest.mark.parametrize("name", SHOWN)
def test_objects_show_themselves_on_a_screen_at_most(name):
    shown = SHOWN[name]()
    lines = repr(shown).splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 120
    html = shown._repr_html_()  # type: ignore[attr-defined]
    assert html.startswith("<")
    assert html.count("<tr>") <= 41
