"""Commands on whole benchmarks: list, build, freeze, verify, diff."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wordnet_splits.base.errors import RecipeError, SplitsError
from wordnet_splits.sources.roots import parse_roots
from wordnet_splits.terminal.options import (
    AllowMissing,
    Json,
    Local,
    Manifests,
    RootOptions,
    Workers,
    add_command,
)
from wordnet_splits.terminal.output import (
    DONE,
    LEFT_OUT,
    NEGATIVE,
    print_json,
    print_table,
    to_stderr,
    to_stdout,
)

if TYPE_CHECKING:
    from wordnet_splits.checks.verify import CheckedGroup, Verification
    from wordnet_splits.making import Build
    from wordnet_splits.manifest import GroupRow
    from wordnet_splits.recipe import Recipe

BenchmarkNames = Annotated[
    list[str] | None, typer.Argument(metavar="[NAME]...", help="Benchmarks, or recipe files.")
]

COLUMNS = ("benchmark", "group", "role", "source", "split", "published", "ours", "status")
COUNTS = ("published", "ours")
SHOWN_ROWS = 20
EXAMPLES = 3


def add_commands(app: typer.Typer) -> None:
    """Add the commands of this module."""
    add_command(app, "list", list_benchmarks, ["wordnet-splits list", "wordnet-splits list --json"])
    examples = ["wordnet-splits build digits", "wordnet-splits build unknown-cifar --out build --workers 2"]
    add_command(app, "build", build_benchmarks, examples)
    examples = [
        "wordnet-splits freeze digits --manifests mine",
        "wordnet-splits freeze --all --manifests mine",
    ]
    add_command(app, "freeze", freeze_benchmarks, examples)
    examples = ["wordnet-splits verify digits", "wordnet-splits verify --manifests mine"]
    add_command(app, "verify", verify_benchmarks, examples)
    examples = ["wordnet-splits diff digits build/digits", "wordnet-splits diff digits build/digits --json"]
    add_command(app, "diff", diff_benchmarks, examples)


def list_benchmarks(json: Json = False, manifests: Manifests = None) -> int:
    """List the benchmarks, their groups, published and frozen counts."""
    from wordnet_splits.checks.listing import list_all

    found = list_all(manifests)
    if json:
        print_json({"benchmarks": [b.as_dict() for b in found.benchmarks]})
        return DONE
    rows = [
        (b.name, g.group, g.role, g.source, g.split, g.published, _ours(g), g.status)
        for b in found.benchmarks
        for g in b.groups
    ]
    print_table(COLUMNS, rows, right=COUNTS)
    return DONE


def build_benchmarks(
    names: BenchmarkNames = None,
    all_: Annotated[bool, typer.Option("--all", help="Build every shipped benchmark.")] = False,
    root: RootOptions = None,
    out: Annotated[Path, typer.Option(help="Folder to write <name>/ into.")] = Path("build"),
    seed: Annotated[int | None, typer.Option(help="Another draw, named NAME@seed=N, never frozen.")] = None,
    allow_missing: AllowMissing = False,
    local: Local = False,
    workers: Workers = 1,
    json: Json = False,
) -> int:
    """Build manifests from rules, inventories and the roots at hand."""
    from wordnet_splits.base.progress import OnStderr
    from wordnet_splits.checks.listing import buildable
    from wordnet_splits.making import build, run_for_each
    from wordnet_splits.recipe import declarations_of, load_recipe, recipe_names

    chosen = _names_or_all(names, all_, () if names else buildable())
    roots = parse_roots(root or [], declarations_of(*chosen))
    results = []
    recipes = [_buildable(load_recipe(name)) for name in chosen]  # a wrong one is refused before any is built
    _say_unused(root or [], {source for recipe in recipes for source in recipe.sources})
    for name, recipe in zip(chosen, recipes, strict=True):
        if (
            name not in recipe_names()
            and recipe.name in recipe_names()
            and recipe != load_recipe(recipe.name)
        ):
            to_stderr(f"{name}: {recipe.name} is another benchmark's name; give this one a name of its own")
    for result in run_for_each(
        build,
        recipes,
        what="building",
        roots=roots,
        workers=workers,
        progress=OnStderr(),
        out=out,
        seed=seed,
        allow_missing=allow_missing,
        local=local,
    ):
        results.append(result)
        for leak in result.unnamed:
            to_stderr(f"{result.manifest.name}: {leak.line()}; the recipe does not name it")
        if not json:
            to_stderr(f"built {result.manifest.name} in {result.folder}")
            _say_findings(result)
    if json:
        print_json(
            {
                "built": [
                    {
                        "name": r.manifest.name,
                        "out": str(r.folder),
                        "complete": r.manifest.complete,
                        "groups": [g.model_dump() for g in r.manifest.groups],
                        "fingerprint": r.manifest.fingerprint,
                        "missing": [p.as_dict() for p in r.problems],
                        "unexpected": r.unexpected,
                        "unread": r.unread,
                    }
                    for r in results
                ]
            }
        )
    else:
        print_groups([(r.manifest.name, r.manifest.groups, None) for r in results])
    return LEFT_OUT if any(r.manifest.data.missing for r in results) else DONE


def freeze_benchmarks(
    names: BenchmarkNames = None,
    all_: Annotated[bool, typer.Option("--all", help="Freeze every build found.")] = False,
    built: Annotated[Path, typer.Option(help="Folder that `build` wrote.")] = Path("build"),
    manifests: Annotated[Path, typer.Option(help="Folder of frozen manifests.")] = Path("manifests"),
    json: Json = False,
) -> int:
    """Copy verified builds with nothing missing into the frozen manifests."""
    from wordnet_splits.checks.freeze import freeze

    found = sorted(f.parent.name for f in built.glob("*/manifest.json") if "@" not in f.parent.name)
    chosen = _names_or_all(names, all_, found, where=f"builds in {built}")
    frozen = [freeze(n, built=built, manifests=manifests) for n in chosen]
    if json:
        print_json({"frozen": [{"name": f.name, "out": str(f.folder)} for f in frozen]})
    else:
        for result in frozen:
            to_stderr(f"frozen {result.name} in {result.folder}")
    return DONE


def verify_benchmarks(
    names: BenchmarkNames = None,
    all_: Annotated[bool, typer.Option("--all", help="Verify every frozen benchmark (the default).")] = False,
    root: RootOptions = None,
    manifests: Manifests = None,
    out: Annotated[Path | None, typer.Option(help="Folder to keep the fresh builds in.")] = None,
    workers: Workers = 1,
    json: Json = False,
) -> int:
    """Check frozen manifests against the rules, and against raw data where roots are given."""
    from wordnet_splits.base.progress import OnStderr
    from wordnet_splits.checks.verify import verify
    from wordnet_splits.finding import manifest_names
    from wordnet_splits.making import run_for_each
    from wordnet_splits.recipe import declarations_of

    where = f"frozen manifests in {manifests}" if manifests else "frozen manifests"
    chosen = _names_or_all(names, all_ or not names, manifest_names(manifests), where=where)
    roots = parse_roots(root or [], declarations_of(*chosen, manifests=manifests))
    found = []
    for result in run_for_each(
        verify,
        chosen,
        what="verifying",
        roots=roots,
        workers=workers,
        progress=OnStderr(),
        manifests=manifests,
        out=out,
    ):
        found.append(result)
        if not json:
            _say_findings(result)
    _say_unused(root or [], {group.source for r in found for group in r.groups})
    ok = all(r.ok for r in found)
    if json:
        print_json({"ok": ok, "benchmarks": [r.as_dict() for r in found]})
    else:
        print_groups([(r.name, r.groups, [_compared(c) for c in r.checks]) for r in found])
        to_stdout()
        to_stdout(_verdict(found))
    return DONE if ok else NEGATIVE


def diff_benchmarks(
    a: Annotated[str, typer.Argument(help="A benchmark or a manifest's folder.")],
    b: Annotated[str, typer.Argument(help="Another.")],
    json: Json = False,
) -> int:
    """Show what differs between two manifests, class by class and image by image."""
    from wordnet_splits.finding import load_manifest
    from wordnet_splits.manifest.diff import diff_manifests

    found = diff_manifests(*(load_manifest(place, as_shipped=False, older=True) for place in (a, b)))
    if json:
        print_json(found.as_dict())
        return DONE if found.same else NEGATIVE
    for what, table in (("classes", found.classes), ("images", found.images)):
        for kind, title in (("only_a", f"only in {a}"), ("only_b", f"only in {b}"), ("changed", "changed")):
            rows = getattr(table, kind)
            to_stdout(f"{what} {title}: {len(rows):,}")
            for row in rows[:SHOWN_ROWS]:
                to_stdout(f"  {row}")
            if len(rows) > SHOWN_ROWS:
                to_stdout(f"  and {len(rows) - SHOWN_ROWS:,} more (--json has all)")
    to_stdout("the same" if found.same else "different")
    return DONE if found.same else NEGATIVE


def _compared(check: CheckedGroup) -> str:
    """Say what was compared: never more than was."""
    if check.problems:
        return "1 problem" if check.problems == 1 else f"{check.problems:,} problems"
    if check.split == "classes":
        return f"rule {check.rule:,}"
    return f"ids {check.ids:,}, pixels {check.pixels:,}"


def _verdict(found: Sequence[Verification]) -> str:
    classes, ids, pixels, images = (
        sum(getattr(c, name) or 0 for r in found for c in r.checks if (c.split == "classes") == of_classes)
        for name, of_classes in (("rule", True), ("ids", False), ("pixels", False), ("expected", False))
    )
    good = sum(r.ok for r in found)
    agree = "benchmark agrees with its rules" if len(found) == 1 else "benchmarks agree with their rules"
    return (
        f"{good} of {len(found)} {agree}: {classes:,} classes by rule, {ids:,} ids and "
        f"{pixels:,} pixels of {images:,} images compared"
        + ("" if good == len(found) else "; see the problems above")
    )


def print_groups(benchmarks: Sequence[tuple[str, Sequence[GroupRow], Sequence[str] | None]]) -> None:
    """Print the groups of benchmarks as one table, then why published and ours differ."""
    rows = []
    notes: dict[str, str] = {}
    for name, groups, compared in benchmarks:
        for n, g in enumerate(groups):
            status = g.status
            if compared is not None and not (g.awaits and compared[n].startswith("ids")):
                status = compared[n]
            rows.append((name, g.group, g.role, g.source, g.split, g.published, _ours(g), status))
            differs = g.published is not None and g.published != g.expected
            if g.note and (differs or g.expected is None):
                notes.setdefault(f"{g.group}: {g.note}", name)
        for (group, reason), splits in _reasons(groups).items():
            notes.setdefault(f"{group} {' and '.join(splits)}: {reason}", name)
    print_table(COLUMNS, rows, right=COUNTS)
    if notes:
        to_stdout()
        to_stdout("Where published and ours differ, a source is awaited, or far is nearer than near:")
        for note, name in notes.items():
            to_stdout(f"  {name}: {note}")


def _buildable(recipe: Recipe) -> Recipe:
    """Return the recipe; refuse a shipped one that awaits a list (in others a list's name may be wrong)."""
    from wordnet_splits.checks.listing import awaited_lists
    from wordnet_splits.recipe import recipe_names

    if recipe.name in recipe_names() and (absent := awaited_lists(recipe)):
        raise RecipeError(
            f"it awaits the list {absent[0]}, which is not ours to ship",
            where=recipe.name,
            hint="`import kim-archive` and `import facets` make it of what its authors give out",
        )
    return recipe


def _reasons(groups: Sequence[GroupRow]) -> dict[tuple[str, str], list[str]]:
    """Return the splits that await a source, or lack images, for one reason, by (group, reason)."""
    found: dict[tuple[str, str], list[str]] = {}
    for g in groups:
        if g.reason:
            reason = f"awaiting {g.source}: {g.reason}" if g.awaits else g.reason
            found.setdefault((g.group, reason), []).append(g.split)
    return found


def _say_unused(given: Sequence[str], used: Collection[str]) -> None:
    """Say which roots, given by hand, no benchmark needs: most likely another source was meant."""
    for name in dict.fromkeys(text.partition("=")[0] for text in given):
        if name not in used:
            to_stderr(f"--root {name}=... is not used: the sources needed are {', '.join(sorted(used))}")


def _ours(group: GroupRow) -> object:
    """Return the count to show: what is there, or what will be there, marked so."""
    if group.actual is not None:
        return group.actual
    return None if group.expected is None else f"({group.expected:,})"


def _names_or_all(
    names: Sequence[str] | None, all_: bool, known: Sequence[str], where: str | None = None
) -> list[str]:
    if names and all_:
        raise SplitsError("give names or --all, not both")
    if not names and not all_:
        hint = f"give --all, or some of {', '.join(known)}" if known else "give its name"
        raise SplitsError("no benchmark given", hint=hint)
    if not names and not known:
        raise SplitsError("there is none", where=where, hint="name another folder, or build first")
    return list(names or known)


def _say_findings(result: Build | Verification) -> None:
    """Say what was wrong, a line for each kind of problem of a source (--json has every image)."""
    kinds: dict[tuple[str, str], list[Any]] = {}
    for problem in result.problems:
        kinds.setdefault((problem.source, problem.kind), []).append(problem)
    for (source, kind), found in kinds.items():
        named = [p.image_id for p in found if p.image_id][:EXAMPLES]
        if named:
            more = ", ..." if len(found) > EXAMPLES else ""
            to_stderr(f"  {source}: {len(found):,} images {kind}: {', '.join(named)}{more}")
        if kind != "missing" or not named:
            for problem in found[: 1 if named else EXAMPLES]:
                to_stderr(f"  {kind}: {problem.detail}")
    for source, names in result.unexpected.items():
        examples = ", ".join(list(names)[:EXAMPLES])
        to_stderr(f"  {source}: {sum(names.values()):,} files under no known name, such as {examples}")
    for source, reason in result.unread.items():
        to_stderr(f"  {source}: no picture was read: {reason}")
