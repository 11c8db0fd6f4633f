"""The pages build without a broken link and ask for nothing from elsewhere; generated parts are current."""

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
from wordnet_splits.benchmark.recipe.loading import known_keys
from wordnet_splits.metrics import METRICS

pytestmark = pytest.mark.docs
pytest.importorskip("sphinx", reason="pip install '.[docs]'")
pytest.importorskip("torch", reason="the reference of the loaders needs torch")
REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def built(once_for_all_workers):
    """The folder of the built pages; no warning was given."""
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


def test_the_notebooks_keep_their_outputs():
    for path in sorted((REPOSITORY / "docs" / "notebooks").glob("*.ipynb")):
        cells = [cell for cell in json.loads(path.read_text("utf-8"))["cells"] if cell["cell_type"] == "code"]
        assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
        shown = json.dumps([cell["outputs"] for cell in cells])
        for part in ("digits-6-9", "digits True", "image/svg+xml"):
            assert part in shown


@pytest.mark.always
def test_the_generated_pages_are_those_of_the_code():
    script = "import sys; from generating.__main__ import generated\n"
    script += "stale = [path.name for path, text in generated() if path.read_text('utf-8') != text]\n"
    script += "sys.exit(f'`make docs` changes {stale}' if stale else 0)"
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=REPOSITORY / "docs", env=environment, check=False
    )
    assert done.returncode == 0


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
    names = [name for name in found[found.index(package.__name__) + 1 :] if "." not in name]
    assert names[: len(package.__all__)] == package.__all__


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
