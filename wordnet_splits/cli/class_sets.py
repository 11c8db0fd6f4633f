"""The command on published lists of classes that our recipes rebuild: sets."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from wordnet_splits.terminal.options import Json, add_command
from wordnet_splits.terminal.output import DONE, NEGATIVE, print_json, print_table, to_stderr, to_stdout

COLUMNS = ("set", "paper", "groups", "classes", "only published", "only ours", "elsewhere", "checked")


def add_commands(app: typer.Typer) -> None:
    """Add the commands of this module."""
    examples = ["wordnet-splits sets", "wordnet-splits sets imagenette --json"]
    add_command(app, "sets", show_sets, examples)


def show_sets(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="One set: its classes.")] = None,
    published: Annotated[
        Path | None,
        typer.Option(help="The published list, a TSV with a head: what differs from it, class by class."),
    ] = None,
    json: Json = False,
) -> int:
    """Print the published class lists that recipes rebuild, and what differs from them."""
    if name is None:
        if published is not None:
            raise typer.BadParameter("say of which set: wordnet-splits sets NAME --published FILE")
        return _show_all(json)
    if published is not None:
        return _show_differences(name, published, json)
    from wordnet_splits.audit.class_sets import class_set

    found = class_set(name)
    if json:
        print_json({"name": found.recipe.name, "classes": list(found.rows())})
        return DONE
    columns = ("group", "place", "superclass", "class_id", "name")
    print_table(columns, [[vars(c)[column] for column in columns] for c in found.classes], right=("place",))
    return DONE


def _show_all(json: bool) -> int:
    from wordnet_splits.audit.class_sets import class_sets

    rows = class_sets()
    code = DONE if all(row.as_said for row in rows) else NEGATIVE
    if json:
        print_json({"ok": code == DONE, "sets": list(rows.rows())})
        return code
    cells = [
        (r.name, r.paper, r.groups, r.classes, r.only_published, r.only_ours, r.elsewhere, r.checked)
        for r in rows
    ]
    print_table(COLUMNS, cells, right=COLUMNS[2:7])
    to_stdout()
    for note in dict.fromkeys(row.note for row in rows if row.note):
        to_stdout(f"{', '.join(row.name for row in rows if row.note == note)}: {note}")
    return code


def _show_differences(name: str, published: Path, json: bool) -> int:
    from wordnet_splits.audit.class_sets import class_set, list_sha256, read_published

    found = class_set(name)
    lines = read_published(published, found)
    rows = found.differences(lines)
    known = list_sha256(lines, ordered=found.published.ordered) == found.published.sha256
    same = not rows and (not found.published.ordered or lines == found.lines())
    if json:
        print_json({"same": same, "known": known, "differences": list(rows.rows())})
        return DONE if same else NEGATIVE
    if not known:
        to_stderr(f"{published} is not the list that {name} rebuilds ({found.published.origin})")
    if same:
        to_stdout(f"{len(lines):,} classes, 0 differences")
        return DONE
    if not rows:
        to_stdout(f"the same {len(lines):,} classes in another order")
        return NEGATIVE
    columns = ("class_id", "name", "published", "ours", "evidence")
    print_table(columns, [[vars(row)[column] for column in columns] for row in rows])
    to_stdout()
    ways = Counter(
        "only published" if not r.ours else "elsewhere" if r.published else "only ours" for r in rows
    )
    to_stdout(f"{len(rows):,} differences: " + ", ".join(f"{n:,} {way}" for way, n in sorted(ways.items())))
    return NEGATIVE
