"""The pages build without a broken link, ask for nothing from elsewhere, and hold all; the notebooks run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import fix_resize
import loaders.harness
import wordnet_splits
from tests.test_examples import PROGRAMS, help_pages
from wordnet_splits.benchmark.recipe import Recipe
from wordnet_splits.benchmark.recipe.text import known_keys
from wordnet_splits.metrics import METRICS

pytestmark = pytest.mark.docs
pytest.importorskip("sphinx", reason="pip install '.[docs]'")
pytest.importorskip("torch", reason="the reference of the loaders needs torch")
REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def built(once_for_all_workers):
    """The folder of the built pages; no warning was given, and every cell of the notebooks ran."""
    if folder := os.environ.get("BUILT_DOCS"):  # by `make docs`, which fails at a warning
        return Path(folder)

    def write(folder):
        words = [
            sys.executable,
            "-m",
            "sphinx",
            "-q",
            "-W",
            "--keep-going",
            "-b",
            "html",
            "docs",
            str(folder),
        ]
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("WORDNET_SPLITS_")
        }
        environment["PYTHONPATH"] = str(REPOSITORY)
        done = subprocess.run(
            words, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr

    return once_for_all_workers("docs", write)


class Asked(HTMLParser):
    """The addresses that a browser asks for by itself when it shows a page."""

    def __init__(self):
        super().__init__()
        self.addresses = []

    def handle_starttag(self, tag, attrs):
        if tag != "a":
            self.addresses += [value for key, value in attrs if key in ("src", "href", "srcset") and value]


def test_pages_ask_for_nothing_from_elsewhere(built):
    pages = sorted(built.rglob("*.html"))
    assert len(pages) > 30
    for page in pages:
        asked = Asked()
        asked.feed(page.read_text("utf-8"))
        assert asked.addresses
        for address in asked.addresses:
            assert not re.match(r"(https?:)?//", address), (page, address)
    for style in built.rglob("*.css"):
        text = style.read_text("utf-8")
        assert "@import" not in text
        assert not re.search(r"url\(\s*[\"']?(https?:)?//", text), style


def test_the_notebook_ran_and_is_kept_without_outputs(built):
    text = (built / "notebooks" / "my-model.html").read_text("utf-8")
    for part in ("digits-6-9 FPR95 (ID positive)", "digits True", "<img"):
        assert part in text
    kept = json.loads((REPOSITORY / "docs" / "notebooks" / "my-model.ipynb").read_text("utf-8"))
    assert not any(cell.get("outputs") for cell in kept["cells"])


@pytest.mark.always
def test_the_picture_of_the_first_page_is_what_the_manifest_gives():
    drawn = subprocess.run(
        [sys.executable, "docs/generating/tree.py"],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert drawn.stdout == (REPOSITORY / "docs" / "tree.svg").read_text("utf-8")


def headings(built, page):
    """The text of a page's headings."""
    text = (built / "reference" / f"{page}.html").read_text("utf-8")
    found = re.findall(r"<h[1-6]>(.*?)<a class=\"headerlink\"", text, re.DOTALL)
    return [re.sub(r"<[^>]+>", "", heading) for heading in found]


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_reference_has_every_command(built, program, capsys):
    module = __import__(PROGRAMS[program], fromlist=["app"])
    commands = dict(help_pages(program, module.app, capsys))
    families = {words[:-1] for words in commands if words}
    expected = {" ".join((program, *words)) for words in commands if words not in families}
    found = headings(built, "commands")
    assert {heading for heading in found if heading.startswith(f"{program} ")} == expected


@pytest.mark.parametrize("package", [wordnet_splits, loaders.harness, fix_resize])
def test_the_reference_has_every_public_name(built, package):
    found = headings(built, "python")
    start = found.index(package.__name__) + 1
    assert found[start : start + len(package.__all__)] == package.__all__


def test_the_reference_has_every_metric(built):
    found = {name for heading in headings(built, "metrics") for name in heading.split(", ")}
    assert found >= set(METRICS)


def test_the_reference_describes_every_key_of_a_recipe(built):
    text = (built / "reference" / "recipe.html").read_text("utf-8")
    rows = re.findall(r"<tr.*?</tr>", text, re.DOTALL)
    cells = [
        [re.sub(r"<[^>]+>", "", cell).strip() for cell in re.findall(r"<td>.*?</td>", row, re.S)]
        for row in rows
    ]
    described = {row[0] for row in cells if row and row[-1]}
    assert described | set(headings(built, "recipe")) >= known_keys(Recipe) - {"extends", "drop"}
    assert all(f'<span class="pre">{key}</span>' in text for key in ("extends", "drop"))
