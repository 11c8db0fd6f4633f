"""The face of the three programs: help pages whose examples run, versions, and tables that fit a terminal."""

from __future__ import annotations

import importlib
import re
import shlex

import numpy as np
import pytest
from PIL import Image

import wordnet_splits
from tests.hub_server import at_hand
from tests.selection import cases
from tests.wordnet_splits import own_pictures as own
from wordnet_splits.base.terminal import output
from wordnet_splits.base.terminal.runner import run
from wordnet_splits.benchmark.resolve import find_manifest
from wordnet_splits.datasets.catalog import load_catalog
from wordnet_splits.hub.publish import publish
from wordnet_splits.hub.release import collect_release
from wordnet_splits.remote import Address

PROGRAMS = {
    "wordnet-splits": "wordnet_splits.cli.main",
    "fix-resize": "fix_resize.cli.main",
    "unknown-eval": "loaders.harness.cli.main",
}


@pytest.fixture(params=PROGRAMS)
def program(request, capsys, monkeypatch, tmp_path):
    """Name and application of a program, in a folder of its own with some photographs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return request.param, importlib.import_module(PROGRAMS[request.param]).app


def help_pages(name, app, capsys, words=()):
    """Yield every help page of an application by its command."""
    assert run(app, [*words, "-h"], name) == 0
    text = capsys.readouterr().out
    yield words, text
    overview = text.partition("Show this message and exit.")[2].partition("Examples:\n")[0]
    commands = re.findall(r"^  ([a-z][a-z-]+)(?:  |$)", overview, re.MULTILINE)
    for command in commands:
        yield from help_pages(name, app, capsys, (*words, command))


def test_every_help_page_ends_with_two_examples_and_cuts_nothing(program, capsys):
    name, app = program
    pages = dict(help_pages(name, app, capsys))
    assert len(pages) > 3
    for words, text in pages.items():
        assert max(map(len, text.partition("Examples:\n")[2].splitlines())) <= 80, words
        examples = re.sub(r" \\\n +", " ", text.partition("Examples:\n")[2]).strip().splitlines()
        assert len(examples) >= 2, words
        assert all(line.split()[: 1 + len(words)] == [name, *words] for line in map(str.strip, examples))
        assert "..." not in text.partition("Show this message and exit.")[2], words
        assert {line.strip() for line in examples} <= set(app.examples)


FINDING = r"wordnet-splits (diff|audit (list|names|negatives)) |fix-resize audit "
"""Commands that exit with 1 where they find something."""


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """A Hub on this machine that holds what the examples pull."""
    with at_hand(monkeypatch, tmp_path) as state:
        publish(Address("ORG/NAME"), collect_release([find_manifest("digits")]), tag="v1")
        yield state


@pytest.mark.docs
@pytest.mark.usefixtures("own_datasets_forgotten", "hub")
@pytest.mark.parametrize("program", cases(PROGRAMS, always="fix-resize"), indirect=True)
def test_the_examples_run(program, capsys, tmp_path):
    name, app = program
    if name == "unknown-eval":
        pytest.importorskip("torch", reason="models need torch")
    noise = np.random.default_rng(0)
    (tmp_path / "photographs").mkdir()
    for number in range(12):
        pixels = noise.integers(0, 256, (16, 16, 3), np.uint8)
        Image.fromarray(pixels).resize((96, 80)).save(tmp_path / "photographs" / f"{number}.png")
    for folder in ("drawings", "images"):
        (tmp_path / folder).mkdir()
        Image.fromarray(noise.integers(0, 256, (8, 8, 3), np.uint8)).save(tmp_path / folder / "0.png")
    (tmp_path / "neg_labels.txt").write_text("axolotl\nmoonbeam\n")
    first_words = (item.name.split(", ")[0] for item in load_catalog("imagenet1k"))
    (tmp_path / "clip-names.txt").write_text("\n".join(first_words))
    (tmp_path / "words.tsv").write_text("word\tkind\nhouse\tnoun\nyellow\tadjective\n")
    own.class_folders(tmp_path / "pics", ["zebra", "teapot"], {"": 2})
    own.catalog(tmp_path / "pics" / "mypics.tsv", ["zebra", "teapot"], {"all": 2})
    own.declare(tmp_path / "pics", "mypics", "folders")
    for line in app.examples:
        code = run(app, shlex.split(line)[1:], name)
        assert code in (0, 1), (line, capsys.readouterr().err)
        assert code == 0 or re.match(FINDING, line), (line, capsys.readouterr())


def test_the_version_is_that_of_the_package(program, capsys):
    name, app = program
    assert run(app, ["--version"], name) == 0
    assert capsys.readouterr().out == f"{name} {wordnet_splits.__version__}\n"


@pytest.mark.parametrize("width", [200, 80, 60, 40, 20])
def test_tables_fit_the_terminal_and_no_control_character_reaches_it(width, capsys, monkeypatch):
    monkeypatch.setattr(output, "terminal_width", lambda: width)
    columns = ("benchmark", "group", "a long description", "images", "status")
    rows = [("unknown-imagenet-placesval", "near\x1b[31m-200\x07\nx", "why it is so " * 9, 1_281_167, None)]
    output.print_table(columns, rows * 2, right=("images",))
    found = capsys.readouterr()
    lines = found.out.splitlines()
    assert max(map(len, lines)) <= width
    assert all(c.isprintable() for c in found.out.replace("\n", ""))
    left_out = [name for name in columns if name in found.err]
    assert bool(left_out) == (width <= 40)
    if width >= 60:
        assert "1,281,167" in found.out
        assert " ".join(found.out.split()).count("why") == 18


def test_where_there_is_no_terminal_tables_fit_a_page(capsys):
    output.print_table(("a", "b"), [("x " * 150, "y " * 150)])
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 100


def test_lines_are_printed_without_control_characters(capsys):
    output.to_stdout("a\x1b]0;b\x07")
    output.to_stderr("c\rd\ne")
    assert capsys.readouterr() == ("a\\x1b]0;b\\x07\n", "c\\rd\\ne\n")


def test_exhausted_memory_is_one_line(capsys):
    def exhausted(*arguments, **options):
        raise MemoryError

    assert run(exhausted, [], "wordnet-splits") == 2
    found = capsys.readouterr()
    assert found.err.startswith("error: ")
    assert found.err.count("\n") == 1
