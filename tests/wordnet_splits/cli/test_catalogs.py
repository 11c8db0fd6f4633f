"""``catalog make`` and ``catalog check`` of one's own catalog: folders, lists, answers on a terminal."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import subprocess
import termios
from contextlib import contextmanager
from importlib.util import find_spec

import pytest

from tests.raising import mentions
from tests.wordnet_splits.command import PROGRAM, Command, environment
from wordnet_splits.datasets.catalog import read_catalog
from wordnet_splits.linking.asking import PROMPT
from wordnet_splits.wordnet.taxonomy import Taxonomy

NEEDS_WN = pytest.mark.skipif(find_spec("wn") is None, reason="wn is not installed (extra [wn])")
SURE = ["teapot", "zebra"]
UNSURE = ["crane", "seal"]


@pytest.fixture
def command(capsys, monkeypatch, tmp_path):
    return Command(capsys, monkeypatch, tmp_path)


def folder_of(root, classes):
    """Make class folders, each with so many (empty) pictures."""
    for name, pictures in classes.items():
        (root / name).mkdir(parents=True)
        for n in range(pictures):
            (root / name / f"{n}.jpg").touch()
    return root


class Terminal:
    """A command on a pseudo-terminal: keys go in, what is drawn is read until a page is whole."""

    def __init__(self, folder, arguments):
        self._ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [*PROGRAM, *map(str, arguments)],
            cwd=folder,
            env=environment(folder, COLUMNS="100", LINES="40", TERM="xterm"),
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=theirs,
            text=True,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(theirs, termios.TIOCSCTTY, 0),  # so that Ctrl-C is a signal
        )
        os.close(theirs)
        self._read = b""

    def page(self):
        """Wait until a page is drawn; return it."""
        return self.until(PROMPT.encode())

    def until(self, text):
        while text not in self._read:
            assert select.select([self._ours], [], [], 120)[0], self._read
            try:
                more = os.read(self._ours, 4096)
            except OSError:  # the other end is closed
                more = b""
            assert more, self._read
            self._read += more
        page, _, self._read = self._read.partition(text)
        return page.decode()

    def press(self, keys):
        os.write(self._ours, keys)

    def finish(self):
        """Return exit code and stdout; what is still drawn is read, so that the command can end."""
        while select.select([self._ours], [], [], 120)[0]:
            try:
                if not os.read(self._ours, 4096):
                    break
            except OSError:
                break
        out, _ = self.process.communicate(timeout=120)
        return self.process.returncode, out

    def close(self):
        self.process.kill()
        self.process.communicate()
        os.close(self._ours)


@contextmanager
def terminal(folder, *arguments):
    opened = Terminal(folder, arguments)
    try:
        yield opened
    finally:
        opened.close()


def rows_of(path):
    return {c.class_id: c for c in read_catalog(path)}


def test_sure_names_make_a_catalog_and_it_checks(command, tmp_path):
    done = command("catalog", "make", *SURE, "--out", "sea.tsv")
    assert done.code == 0, done
    rows = rows_of(tmp_path / "sea.tsv")
    assert {c.mapped for c in rows.values()} == {"exact"}
    assert Taxonomy.embedded().name(rows["teapot"].wnids[0]) == "teapot.n.01"
    explained = (tmp_path / "sea.explained.tsv").read_text("utf-8").splitlines()
    assert len(explained) == 3
    assert explained[0].split("\t")[:3] == ["class_id", "name", "wnids"]
    checked = command("catalog", "check", "sea.tsv")
    assert checked.code == 0
    assert "sea: 2 classes; 2 exact" in checked.out


def test_check_finds_a_synset_that_does_not_exist(command, tmp_path):
    command("catalog", "make", *SURE, "--out", "sea.tsv")
    path = tmp_path / "sea.tsv"
    path.write_text(path.read_text("utf-8").replace("n0", "n9"), "utf-8")
    done = command("catalog", "check", "sea.tsv")
    assert done.code == 1
    assert "does not exist" in done.out


def test_without_a_terminal_unsure_rows_are_listed_and_the_code_is_3(command, tmp_path):
    done = command("catalog", "make", *UNSURE, *SURE, "--out", "own.tsv")
    assert done.code == 3
    assert "unsure" in done.out
    assert "  crane: n" in done.out
    rows = rows_of(tmp_path / "own.tsv")
    assert rows["crane"].mapped == "proposed"
    assert rows["crane"].why.startswith("unsure, confidence 0.")
    found = command("catalog", "make", *UNSURE, *SURE, "--out", "own.tsv", "--json")
    assert found.code == 3
    assert found.json["unsure"] == UNSURE
    assert found.json["asked"] == 0
    assert set(found.json["rows"][0]) >= {"class_id", "name", "wnid", "confidence", "reason", "runner_up"}


def test_answers_are_kept_and_the_command_goes_on(command, tmp_path):
    own = tmp_path / "own.tsv"
    words = ["catalog", "make", *UNSURE, *SURE, "bass", "--out", own]
    with terminal(tmp_path, *words) as screen:
        first = screen.page()
        assert "[1 of 3] crane" in first
        assert "below it:" in first
        screen.press(b"2\n")
        assert "[2 of 3] seal" in screen.page()
        answered = rows_of(own)["crane"]  # saved before the next question is asked
        assert answered.mapped == "hand"
        chosen = next(line for line in first.splitlines() if line.startswith("  2 "))
        assert Taxonomy.embedded().name(answered.wnids[0]) in chosen
        screen.press(b"q\n")
        code, _ = screen.finish()
    assert code == 3
    with terminal(tmp_path, *words) as screen:
        assert "[1 of 2] seal" in screen.page()
        screen.press(b"99\n")
        assert "[1 of 2] seal" in screen.page()
        screen.press(b"\n")
        assert "[2 of 2] bass" in screen.page()
        screen.press(b"b\n")
        assert "[1 of 2] seal" in screen.page()
        screen.press(b"n\n")
        assert "[2 of 2] bass" in screen.page()
        screen.press(b"harbor seaX\x7fl\n")
        assert "harbor_seal.n.01" in screen.page()
        screen.press(b"\n")
        code, _ = screen.finish()
    assert code == 0
    rows = rows_of(own)
    assert (rows["seal"].wnids, rows["seal"].why) == ((), "by hand: no synset")
    assert rows["crane"] == answered
    assert Taxonomy.embedded().name(rows["bass"].wnids[0]) == "harbor_seal.n.01"
    done = command(*words)  # nothing is left to ask
    assert done.code == 0
    assert rows_of(own) == rows


def test_ctrl_c_keeps_the_answers(tmp_path):
    own = tmp_path / "own.tsv"
    with terminal(tmp_path, "catalog", "make", *UNSURE, "--out", own) as screen:
        screen.page()
        screen.press(b"\n")
        screen.page()
        screen.press(b"\x03")
        code, _ = screen.finish()
    assert code == 130
    assert [c.mapped for c in read_catalog(own)] == ["hand", "proposed"]


@pytest.mark.faults
def test_json_stays_one_object_while_somebody_is_asked(tmp_path):
    with terminal(tmp_path, "catalog", "make", "crane", "--out", tmp_path / "o.tsv", "--json") as screen:
        screen.page()
        screen.press(b"\n")
        code, out = screen.finish()
    assert code == 0
    assert json.loads(out)["asked"] == 1


def test_a_word_that_is_no_noun_is_asked_and_a_typed_one_unknown(tmp_path):
    with terminal(tmp_path, "catalog", "make", "wxyzzy", "--out", tmp_path / "o.tsv") as screen:
        assert "no word of the name is a noun of WordNet" in screen.page()
        screen.press(b"\n")  # there is nothing to take
        screen.page()
        screen.press(b"qqqq\n")
        screen.page()
        screen.press(b"s\n")
        code, _ = screen.finish()
    assert code == 3


def test_rows_edited_by_hand_stay(command, tmp_path):
    path = tmp_path / "own.tsv"
    command("catalog", "make", *UNSURE, "--out", path)
    lines = path.read_text("utf-8").split("\n")
    cells = lines[2].split("\t")
    assert cells[0] == "crane"
    cells[4:7] = ["n03126707", "hand", "the machine"]
    lines[2] = "\t".join(cells)
    path.write_text("\n".join(lines), "utf-8")
    assert command("catalog", "make", *UNSURE, "--out", path, "--json").json["unsure"] == ["seal"]
    assert rows_of(path)["crane"].why == "the machine"


@pytest.mark.parametrize("mapped", ["hand", "wider"])
@pytest.mark.parametrize("confidence", [None, "0.5700"])
def test_the_same_command_gives_a_confirmed_row_its_reason_and_leaves_the_rest(
    command, tmp_path, mapped, confidence
):
    path = tmp_path / "own.tsv"
    command("catalog", "make", *UNSURE, "--out", path)
    lines = path.read_text("utf-8").split("\n")
    cells = lines[2].split("\t")
    cells[4:8] = ["n03126707", mapped, cells[6], confidence or cells[7]]
    assert cells[7]
    lines[2] = "\t".join(cells)
    path.write_text("\n".join(lines), "utf-8")
    assert cells[6].startswith("unsure, confidence ")
    cells[6] = "by hand: lifts and moves heavy objects"
    lines[2] = "\t".join(cells)
    for _ in range(2):
        command("catalog", "make", *UNSURE, "--out", path)
        assert path.read_text("utf-8").split("\n") == lines


def test_folders_with_splits_superclasses_and_odd_names(command, tmp_path):
    root = tmp_path / "pictures"
    folder_of(root / "train", {"hot dog": 2, "Crème brûlée": 3, "ice cream": 1, "cheese cake": 1})
    folder_of(root / "val", {"hot dog": 1, "Crème brûlée": 0, "ice cream": 2, "nothing": 0})
    done = command("catalog", "make", "--root", root, "--out", "food.tsv", "--ask-below", "0")
    assert done.code == 0, done
    assert "nothing" in done.err
    catalog = read_catalog(tmp_path / "food.tsv")
    assert catalog.splits == ("train", "val")
    counts = {c.class_id: c.counts for c in catalog}
    assert counts["hot dog"] == {"train": 2, "val": 1}
    assert counts["Crème brûlée"] == {"train": 3, "val": 0}
    assert set(counts) == {"hot dog", "Crème brûlée", "ice cream", "cheese cake"}
    assert Taxonomy.embedded().name(rows_of(tmp_path / "food.tsv")["hot dog"].wnids[0]) == "hotdog.n.02"


def test_outer_folders_are_superclasses_unless_the_inner_names_recur(command, tmp_path):
    kinds = folder_of(tmp_path / "a", {"bird/crane": 1, "bird/heron": 1, "machine/winch": 1})
    command("catalog", "make", "--root", kinds, "--out", "a.tsv")
    assert {c.class_id: c.superclass for c in read_catalog(tmp_path / "a.tsv")} == {
        "bird/crane": "bird",
        "bird/heron": "bird",
        "machine/winch": "machine",
    }
    places = {"c/church/indoor": 1, "c/church/outdoor": 1, "h/hangar/indoor": 1, "h/hangar/outdoor": 1}
    command("catalog", "make", "--root", folder_of(tmp_path / "b", places), "--out", "b.tsv")
    found = read_catalog(tmp_path / "b.tsv")
    assert next((c.class_id, c.superclass) for c in found) == ("church/indoor", "")
    assert found["hangar/indoor"].wnids == found["hangar/outdoor"].wnids


def test_names_that_differ_in_case_only_and_synsets_of_two_classes_are_said(command, tmp_path):
    (tmp_path / "names.txt").write_text("Sea Otter\nsea otter\n\nsea_otter\nblue whale\n", "utf-8")
    done = command("catalog", "make", "--names", "names.txt", "--out", "own.tsv", "--ask-below", "0")
    assert done.code == 0
    assert done.err.count("'Sea Otter'") == 2
    assert "synsets of several classes: 1" in done.out
    assert ": Sea Otter, sea otter, sea_otter" in done.out


def test_superclasses_of_a_list_decide(command, tmp_path):
    text = "crane\tdevice\nwinch\tdevice\nheron\tbird\nstork\tbird\n"
    (tmp_path / "names.txt").write_text(text, "utf-8")
    done = command("catalog", "make", "--names", "names.txt", "--out", "own.tsv", "--ask-below", "0")
    assert done.code == 0
    assert Taxonomy.embedded().name(rows_of(tmp_path / "own.tsv")["crane"].wnids[0]) == "crane.n.04"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], ("--root", "--names")),
        (["dog", "--names", "x"], ()),
        (["--names", "nowhere.txt"], "nowhere.txt"),
        (["--names", "blank.txt"], "blank.txt"),
        (["--names", "twice.txt"], "dog"),
        (["--root", "nowhere"], ()),
        (["--root", "bare"], ()),
        (["--root", "tabbed"], ()),
        (["dog", "--out", "dog.csv"], "catalog"),
        (["dog", "--out", "others.tsv"], "others.tsv"),
        (["dog", "--out", "shipped.tsv"], "catalog"),
        (["dog", "--ask-below", "2"], "--ask-below"),
        pytest.param(
            ["dog", "--language", "xx"],
            ("xx", "--language"),
            marks=NEEDS_WN,
        ),
        pytest.param(["dog", "--language", "no.xml"], "no.xml", marks=NEEDS_WN),
        (["dog", "--ids", "no.tsv"], "no.tsv"),
        (["dog", "--ids", "twice.txt"], "twice.txt"),
        (
            ["Q144", "Q146"],
            ("Q144", "2"),
        ),
        (["/m/0bt9lr", "bn:00015267n", "dog"], ("2", "3")),
    ],
)
def test_mistakes_are_one_line(command, tmp_path, words, says):
    (tmp_path / "blank.txt").write_text("\n \n", "utf-8")
    (tmp_path / "twice.txt").write_text("dog\ncat\ndog\n", "utf-8")
    (tmp_path / "bare" / "class").mkdir(parents=True)
    folder_of(tmp_path / "tabbed", {"a\tb": 1, "c": 1})
    (tmp_path / "others.tsv").write_text("my notes\n", "utf-8")
    header = "class_id\tindex\tname\tsuperclass\twnids\tmapped\twhy\tcount_all\tcount_group\n"
    (tmp_path / "shipped.tsv").write_text(
        f"# source: x\n{header}dog\t0\tdog\t\tn02084071\texact\t\t\t\n", "utf-8"
    )
    before = (tmp_path / "shipped.tsv").read_bytes()
    assert mentions(command("catalog", "make", *words).error, says)
    assert (tmp_path / "shipped.tsv").read_bytes() == before


def test_names_of_every_script_are_taken_and_shown_escaped(command, tmp_path):
    names = [
        "\u0645\u06cc\u0648\u0647\u200c\u0647\u0627",
        "\u6771\u4eac\u3000\u30bf\u30ef\u30fc",
        "hot\u00a0dog",
    ]
    folder_of(tmp_path / "pictures", dict.fromkeys(names, 1))
    done = command("catalog", "make", "--root", "pictures", "--out", "own.tsv", "--ask-below", "1")
    rows = rows_of(tmp_path / "own.tsv")
    assert set(rows) == set(names)
    assert rows["hot\u00a0dog"].wnids == ("n07697537",)
    shown = done.out + done.err
    assert r"hot\xa0dog" in shown
    assert all(letter not in shown for letter in "\u200c\u3000\u00a0")


def test_a_link_out_of_the_root_is_not_followed(command, tmp_path):
    root = folder_of(tmp_path / "pictures", {"dog": 1, "cat": 1})
    folder_of(tmp_path / "elsewhere", {"secret": 1})
    (root / "link").symlink_to(tmp_path / "elsewhere")
    assert mentions(command("catalog", "make", "--root", root).error, "link")
