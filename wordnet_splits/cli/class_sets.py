"""The command for published lists of classes that our recipes rebuild: sets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wordnet_splits.base.terminal.options import Json, add_command
from wordnet_splits.base.terminal.output import (
    DONE,
    NEGATIVE,
    print_result,
    print_table,
    to_stderr,
    to_stdout,
)

if TYPE_CHECKING:
    from wordnet_splits.studies.class_sets import Difference

COLUMNS = ("set", "paper", "groups", "classes", "only published", "only ours", "elsewhere", "checked")


def add_commands(app: typer.Typer) -> None:
    """Add the commands of this module."""
    examples = ["wordnet-splits sets", "wordnet-splits sets imagenette --json"]
    add_command(app, "sets", show_sets, examples)


def show_sets(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="A set, to print its classes.")] = None,
    published: Annotated[
        Path | None,
        typer.Option(help="The published list, a TSV with a header; what differs is printed."),
    ] = None,
    json: Json = False,
) -> int:
    """Print the published class lists that recipes rebuild, and what differs from them."""
    if name is None:
        if published is not None:
            raise typer.BadParameter("name the set: wordnet-splits sets NAME --published FILE")
        return _show_all(json)
    if published is not None:
        return _show_differences(name, published, json)
    from wordnet_splits.studies.class_sets import class_set

    class_list = class_set(name)
    columns = ("group", "place", "superclass", "class_id", "name")
    rows = [[vars(c)[column] for column in columns] for c in class_list.classes]
    result = {"name": class_list.recipe.name, "classes": list(class_list.rows())}
    print_result(result, json, lambda: print_table(columns, rows, right=("place",)))
    return DONE


def _show_all(json: bool) -> int:
    from wordnet_splits.studies.class_sets import class_sets

    sets = class_sets()
    ok = all(row.as_declared for row in sets)

    def print_sets() -> None:
        rows = [
            (r.name, r.paper, r.groups, r.classes, r.only_published, r.only_ours, r.elsewhere, r.checked)
            for r in sets
        ]
        print_table(COLUMNS, rows, right=COLUMNS[2:7])
        to_stdout()
        for note in dict.fromkeys(row.note for row in sets if row.note):
            to_stdout(f"{', '.join(row.name for row in sets if row.note == note)}: {note}")

    print_result({"ok": ok, "sets": list(sets.rows())}, json, print_sets)
    return DONE if ok else NEGATIVE


def _show_differences(name: str, published: Path, json: bool) -> int:
    from wordnet_splits.studies.class_sets import class_set, list_sha256, read_published

    rebuilt = class_set(name)
    lines = read_published(published, rebuilt)
    rows = rebuilt.differences(lines)
    is_published = list_sha256(lines, ordered=rebuilt.published.ordered) == rebuilt.published.sha256
    same = not rows and (not rebuilt.published.ordered or lines == rebuilt.lines())
    print_result(
        {"same": same, "known": is_published, "differences": list(rows.rows())},
        json,
        lambda: _print_differences(rows, len(lines), same),
    )
    if not is_published and not json:
        to_stderr(f"{published} is not the list that {name} rebuilds ({rebuilt.published.origin})")
    return DONE if same else NEGATIVE


def _print_differences(rows: Sequence[Difference], count: int, same: bool) -> None:
    if same:
        to_stdout(f"{count:,} classes, 0 differences")
    elif not rows:
        to_stdout(f"the same {count:,} classes in another order")
    else:
        columns = ("class_id", "name", "published", "ours", "evidence")
        print_table(columns, [[vars(row)[column] for column in columns] for row in rows])
        kinds = Counter(
            "only published" if not r.ours else "elsewhere" if r.published else "only ours" for r in rows
        )
        counts = ", ".join(f"{n:,} {kind}" for kind, n in sorted(kinds.items()))
        to_stdout()
        to_stdout(f"{len(rows):,} differences: {counts}")
