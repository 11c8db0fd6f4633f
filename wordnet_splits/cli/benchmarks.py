"""Commands on whole benchmarks: list, build, freeze, verify, diff."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wordnet_splits.base.errors import ManifestError, RecipeError, SplitsError, unknown
from wordnet_splits.base.tabular import PAGE_WIDTH, terminal_width
from wordnet_splits.base.terminal.options import (
    AllowMissing,
    Json,
    Local,
    Manifests,
    RootOptions,
    Workers,
)
from wordnet_splits.base.terminal.output import (
    DONE,
    LEFT_OUT,
    NEGATIVE,
    print_first,
    print_lines,
    print_result,
    print_table,
    to_stderr,
    to_stdout,
)
from wordnet_splits.benchmark.group_table import print_groups, print_problems
from wordnet_splits.cli.main import app
from wordnet_splits.cli.sources import root_error
from wordnet_splits.datasets.catalog.declarations import merge_declarations
from wordnet_splits.datasets.sources.roots import parse_roots

if TYPE_CHECKING:
    from wordnet_splits.benchmark.checks.verification import CheckedGroup, Verification
    from wordnet_splits.benchmark.manifest import Manifest
    from wordnet_splits.benchmark.recipe import Recipe

BenchmarkNames = Annotated[
    list[str] | None, typer.Argument(metavar="NAME", help="Benchmarks, or recipe files.")
]
ManifestNames = Annotated[
    list[str] | None,
    typer.Argument(metavar="NAME", help="Frozen benchmarks, folders of manifests, or addresses."),
]

LISTED_ROLES = ("id", "near", "far", "external", "csid")
SHOWN_ROWS = 20


@app.command(
    "list",
    heading="Use",
    examples=[
        "wordnet-splits list",
        "wordnet-splits list digits --json",
    ],
)
def list_benchmarks(
    names: ManifestNames = None,
    root: RootOptions = None,
    json: Json = False,
    manifests: Manifests = None,
) -> int:
    """List the benchmarks, with the classes of each role, the test images, and whether these are at hand."""
    from wordnet_splits.base.progress import OnStderr
    from wordnet_splits.benchmark.checks.doctor import carried_declarations, check_sources, read_benchmarks
    from wordnet_splits.benchmark.checks.listing import list_benchmarks

    benchmarks = list_benchmarks(manifests, names or ()).benchmarks
    known = read_benchmarks(manifests, names or ())
    roots = parse_roots(root or [], carried_declarations(known))
    diagnosis = check_sources(roots, benchmarks=known, progress=OnStderr())
    for source in diagnosis.sources:
        if source.error:
            to_stderr(root_error(source))
    ready = {b.name: b.ready for b in diagnosis.benchmarks}
    result = {"benchmarks": [{**b.as_dict(), "ready": ready[b.name].as_dict()} for b in benchmarks]}
    roles = LISTED_ROLES if terminal_width() >= PAGE_WIDTH else LISTED_ROLES[:3]
    columns = ("benchmark", *roles, "images", "awaits", "runs here")
    rows = [
        (b.name, *map(b.count_classes, roles), b.count_images("test"), b.awaits, ready[b.name].runs_here)
        for b in benchmarks
    ]
    print_result(result, json, lambda: print_table(columns, rows, right=columns[1:-2]))
    if roles != LISTED_ROLES and not json:
        to_stderr("too narrow for external, csid (--json has all)")
    return DONE


@app.command(
    "build",
    heading="Make",
    examples=[
        "wordnet-splits build digits",
        "wordnet-splits build unknown-cifar --out build --workers 2",
    ],
)
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
    from wordnet_splits.benchmark.construct import build_benchmark, run_for_each
    from wordnet_splits.benchmark.recipe import buildable, load_recipe, recipe_names
    from wordnet_splits.benchmark.resolve import declarations_of, find_recipe

    names = _names_or_all(names, all_, () if names else buildable())
    roots = parse_roots(root or [], declarations_of(*names))
    recipes = [_buildable(find_recipe(name)) for name in names]  # a wrong one is refused before any is built
    _warn_of_unused(root or [], {source for recipe in recipes for source in recipe.sources})
    for name, recipe in zip(names, recipes, strict=True):
        if (
            name not in recipe_names()
            and recipe.name in recipe_names()
            and recipe != load_recipe(recipe.name)
        ):
            to_stderr(f"{name}: {recipe.name} is another benchmark's name; choose a different name")
    builds = []
    for result in run_for_each(
        build_benchmark,
        recipes,
        task="building",
        roots=roots,
        workers=workers,
        progress=OnStderr(),
        out=out,
        seed=seed,
        allow_missing=allow_missing,
        local=local,
    ):
        builds.append(result)
        for leak in result.unnamed:
            to_stderr(f"{result.manifest.name}: {leak.line()}; the recipe does not name it")
        if not json:
            to_stderr(f"built {result.manifest.name} in {result.folder}")
            print_problems(result)
    rows = [
        {
            "name": build.manifest.name,
            "out": str(build.folder),
            "complete": build.manifest.complete,
            "groups": [g.model_dump() for g in build.manifest.groups],
            "fingerprint": build.manifest.fingerprint,
            "missing": [p.as_dict() for p in build.problems],
            "unexpected": build.unexpected,
            "unread": build.unread,
        }
        for build in builds
    ]
    groups = [(build.manifest.name, build.manifest.groups, None) for build in builds]
    print_result({"built": rows}, json, lambda: print_groups(groups))
    return LEFT_OUT if any(build.manifest.data.missing for build in builds) else DONE


@app.command(
    "freeze",
    heading="Make",
    examples=[
        "wordnet-splits freeze digits --manifests mine",
        "wordnet-splits freeze --all --manifests mine",
    ],
)
def freeze_benchmarks(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="BUILD", help="Names of builds in --built, or their folders."),
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Freeze every build in the folder.")] = False,
    built: Annotated[Path, typer.Option(help="Folder that `build` wrote.")] = Path("build"),
    manifests: Annotated[Path, typer.Option(help="Folder of frozen manifests.")] = Path("manifests"),
    message: Annotated[
        str | None,
        typer.Option("-m", "--message", help="What changed and why: for CHANGELOG.md and the card."),
    ] = None,
    json: Json = False,
) -> int:
    """Copy verified builds with nothing missing into the frozen manifests.

    An earlier version of a custom benchmark stays next to the new one, as NAME@v1.
    """
    from wordnet_splits.benchmark.checks.freeze import freeze

    builds = sorted(f.parent.name for f in built.glob("*/manifest.json") if "@" not in f.parent.name)
    names = _names_or_all(names, all_, builds, where=f"builds in {built}")
    frozen = [freeze(_find_build(name, built), manifests=manifests, message=message) for name in names]
    rows = [{"name": f.name, "out": str(f.folder), "absent": list(f.absent)} for f in frozen]
    print_result({"frozen": rows}, json)
    for manifest in () if json else frozen:
        to_stderr(f"frozen {manifest.name} in {manifest.folder}{', unchanged' if manifest.unchanged else ''}")
        if manifest.unchanged and message is not None:
            to_stderr("  its CHANGELOG.md has a line for this version, and stays as it is")
        if manifest.absent:
            to_stderr(f"  [about] of its recipe lacks {', '.join(manifest.absent)}: see docs/recipes.md")
    return DONE


def _find_build(name: str, built: Path) -> Manifest:
    """Return the build of that name in the folder ``built``, or at that path."""
    from wordnet_splits.benchmark.recipe import recipe_names
    from wordnet_splits.benchmark.resolve import is_path, load_manifest

    if is_path(name) or (built / name / "manifest.json").is_file():
        return load_manifest(name if is_path(name) else built / name, as_shipped=False)
    if name in recipe_names():
        hint = f"build it first: wordnet-splits build {name} --out {built}"
        raise ManifestError(f"{name} is not built", where=str(built), hint=hint)
    raise unknown("build", name, (f.parent.name for f in built.glob("*/manifest.json")), where=str(built))


@app.command(
    "verify",
    heading="Make",
    examples=[
        "wordnet-splits verify digits",
        "wordnet-splits verify --manifests mine",
    ],
)
def verify_benchmarks(
    names: ManifestNames = None,
    all_: Annotated[bool, typer.Option("--all", help="Verify every frozen benchmark (the default).")] = False,
    root: RootOptions = None,
    manifests: Manifests = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the fresh builds of benchmarks without problems.")
    ] = None,
    workers: Workers = 1,
    summary: Annotated[
        bool, typer.Option("--summary", help="Print a row for each family of benchmarks, not for each group.")
    ] = False,
    json: Json = False,
) -> int:
    """Check frozen manifests against the rules, and against raw data where roots are given."""
    from wordnet_splits.base.progress import OnStderr
    from wordnet_splits.benchmark.checks.verify import verify_benchmark
    from wordnet_splits.benchmark.construct import run_for_each
    from wordnet_splits.benchmark.manifest.loading import manifest_names
    from wordnet_splits.benchmark.resolve import load_manifest

    where = f"frozen manifests in {manifests}" if manifests else "frozen manifests"
    names = _names_or_all(names, all_ or not names, manifest_names(manifests), where=where)
    frozen = [load_manifest(name, manifests, check="none") for name in names]
    roots = parse_roots(root or [], merge_declarations(manifest.declarations for manifest in frozen))
    results = []
    for result in run_for_each(
        verify_benchmark,
        frozen,
        task="verifying",
        roots=roots,
        workers=workers,
        progress=OnStderr(),
        out=out,
    ):
        results.append(result)
        if not json:
            print_problems(result)
    _warn_of_unused(root or [], {group.source for result in results for group in result.groups})
    ok = all(result.ok for result in results)

    def print_verdict() -> None:
        if summary:
            _print_families(results)
        else:
            print_groups([(r.name, r.groups, [_compared(c) for c in r.checks]) for r in results])
            to_stdout()
            to_stdout(_verdict(results))

    print_result({"ok": ok, "benchmarks": [r.as_dict() for r in results]}, json, print_verdict)
    return DONE if ok else NEGATIVE


@app.command(
    "diff",
    heading="Make",
    examples=[
        "wordnet-splits diff digits build/digits",
        "wordnet-splits diff digits build/digits --json",
    ],
)
def diff_benchmarks(
    a: Annotated[str, typer.Argument(help="A benchmark or a manifest's folder.")],
    b: Annotated[str, typer.Argument(help="Another benchmark or folder.")],
    json: Json = False,
) -> int:
    """Show which classes, roles and images differ between two manifests."""
    from wordnet_splits.benchmark.manifest.diff import describe_diff, row_words
    from wordnet_splits.benchmark.resolve import load_manifest

    difference = describe_diff(*(load_manifest(name, as_shipped=False) for name in (a, b)))

    def print_difference() -> None:
        print_lines(difference.words)
        for kind, table in (("classes", difference.classes), ("images", difference.images)):
            parts = {f"only in {a}": table.only_a, f"only in {b}": table.only_b, "changed": table.changed}
            for title, rows in parts.items():
                to_stdout(f"{kind} {title}: {len(rows):,}")
                print_first([f"  {row_words(row)}" for row in rows], SHOWN_ROWS, write=to_stdout)
        to_stdout("the same" if difference.same else "different")

    print_result(difference, json, print_difference)
    return DONE if difference.same else NEGATIVE


def _compared(check: CheckedGroup) -> str:
    """Return the numbers of compared rules, ids and pixels, or of problems."""
    if check.problems:
        return "1 problem" if check.problems == 1 else f"{check.problems:,} problems"
    if check.split == "classes":
        return f"rule {check.rule:,}"
    return f"ids {check.ids:,}, pixels {check.pixels:,}"


def _print_families(results: Sequence[Verification]) -> None:
    """Print the numbers of compared classes, ids and pixels of the benchmarks with one prefix."""
    families: dict[str, list[Verification]] = {}
    for result in results:
        families.setdefault(result.name.partition("-")[0], []).append(result)
    columns = ("family", "benchmarks", "agree", "classes", "ids", "pixels", "images")
    rows = [
        (family, len(members), sum(member.ok for member in members), *_counts(members))
        for family, members in families.items()
    ]
    rows.append(("all", len(results), sum(result.ok for result in results), *_counts(results)))
    print_table(columns, rows, right=columns[1:])


def _counts(results: Sequence[Verification]) -> tuple[int, int, int, int]:
    """Return the compared classes, ids and pixels of benchmarks, and the expected images."""
    checks = [check for result in results for check in result.checks]
    classes = sum(check.rule or 0 for check in checks if check.split == "classes")
    of_images = [check for check in checks if check.split != "classes"]
    ids, pixels, images = (
        sum(getattr(check, name) or 0 for check in of_images) for name in ("ids", "pixels", "expected")
    )
    return classes, ids, pixels, images


def _verdict(results: Sequence[Verification]) -> str:
    classes, ids, pixels, images = _counts(results)
    good = sum(result.ok for result in results)
    agree = "benchmark agrees with its rules" if len(results) == 1 else "benchmarks agree with their rules"
    return (
        f"{good} of {len(results)} {agree}: {classes:,} classes by rule, {ids:,} ids and "
        f"{pixels:,} pixels of {images:,} images compared"
        + ("" if good == len(results) else "; see the problems above")
    )


def _buildable(recipe: Recipe) -> Recipe:
    """Return the recipe; raise RecipeError for a shipped recipe that awaits a list that we may not ship."""
    from wordnet_splits.benchmark.recipe import awaited_lists, recipe_names

    if recipe.name in recipe_names() and (lists := awaited_lists(recipe)):
        raise RecipeError(
            f"it awaits the list {lists[0]}, which we may not ship",
            where=recipe.name,
            hint="import it from the files of its authors; see docs/manifests.md",
        )
    return recipe


def _warn_of_unused(roots: Sequence[str], used: Collection[str]) -> None:
    """Print the options --root that no benchmark needs: most likely another source was meant."""
    for name in dict.fromkeys(text.partition("=")[0] for text in roots):
        if name not in used:
            to_stderr(f"--root {name}=... is not used: the sources needed are {', '.join(sorted(used))}")


def _names_or_all(
    names: Sequence[str] | None, all_: bool, available: Sequence[str], where: str | None = None
) -> list[str]:
    if names and all_:
        raise SplitsError("give names or --all, not both")
    if not names and not all_:
        hint = f"give --all, or some of {', '.join(available)}" if available else "give its name"
        raise SplitsError("no benchmark given", hint=hint)
    if not names and not available:
        raise SplitsError("no benchmark here", where=where, hint="give another folder, or build first")
    return list(names or available)
