"""Tables for a paper: LaTeX that parses, bold by its rule, and every layout on results that lack a role."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loaders.harness.cli.main import app
from loaders.harness.evaluation.run_evaluation import evaluate_runs
from loaders.harness.results.metadata import MetricOptions
from loaders.harness.results.results import Results
from loaders.harness.results.table import Table, latex_text, tables_as_latex, tables_as_markdown
from loaders.harness.results.tables import format_tables, layouts, missing_roles, tables
from tests.loaders.harness.evaluation.fake_runs import fake_manifest, fake_run
from tests.raising import raises
from wordnet_splits.base.errors import DataError, UnknownNameError
from wordnet_splits.base.terminal.runner import run

SETS = [
    ("known", "id", "test", 90),
    ("near-a", "near", "test", 60),
    ("far-a", "far", "test", 40),
    ("far-b", "far", "test", 50),
]
HOSTILE = r"50%_of $x$ & \input{/etc/passwd} ~^#{}[k=10]"


def of_sets(sets: list[tuple[str, str, str, int]], models: int = 2, **options: object) -> Results:
    manifest = fake_manifest(sets, name="digits")
    networks = [fake_run(manifest, seed, model=f"a_{seed}", splits=("test",)) for seed in range(models)]
    return evaluate_runs(manifest, networks, "mcp,energy,mls", **options)


@pytest.fixture(scope="module")
def results() -> Results:
    return of_sets(SETS, options=MetricOptions(replicates=50))


def latex_rows(text: str) -> list[tuple[str, list[list[str]]]]:
    """Parse LaTeX tables strictly: (caption, rows of cells); fails on anything that would not compile."""
    body = "\n".join(line for line in text.splitlines() if not line.startswith("%"))
    body = body.replace("{!}{%", "{!}{")
    assert not re.search(r"(?<!\\)[%#]", body)
    assert len(re.findall(r"(?<!\\)\$", body)) % 2 == 0
    depth = 0
    for brace in re.findall(r"(?<!\\)(?:\\\\)*([{}])", body):
        depth += 1 if brace == "{" else -1
        assert depth >= 0
    assert depth == 0
    outside_math = re.sub(r"(?<!\\)\$[^$]*\$", "", re.sub(r"\\[a-z]+\{tab:[^}]*\}", "", body))
    assert not re.search(r"(?<!\\)[_^~]", outside_math)
    opened: list[str] = []
    for kind, name in re.findall(r"\\(begin|end)\{(\w+)\}", body):
        if kind == "begin":
            opened.append(name)
        else:
            assert opened.pop() == name
    assert not opened
    found = []
    for part in body.split(r"\begin{table}")[1:]:
        (caption,) = re.findall(r"\\caption\{(.*)\}\n", part)
        alignment, inside = re.findall(
            r"\\begin\{tabular\}\{([lr]+)\}(.*?)\\end\{tabular\}", part, re.DOTALL
        )[0]
        rows = []
        for line in inside.strip().splitlines():
            if line.startswith(("\\toprule", "\\midrule", "\\bottomrule", "\\cmidrule")):
                continue
            assert line.endswith(r" \\"), line
            cells = re.split(r"(?<!\\)&", line.removesuffix(r" \\"))
            width = sum(int((re.findall(r"\\multicolumn\{(\d+)\}", cell) or [1])[0]) for cell in cells)
            assert width == len(alignment), line
            rows.append([cell.strip() for cell in cells])
        found.append((caption, rows))
    return found


@pytest.mark.parametrize("layout", [None, *layouts()])
def test_every_layout_is_latex_that_parses_and_has_the_text_s_cells(
    results: Results, layout: str | None
) -> None:
    parsed = latex_rows(results.to_latex(layout))
    printed = [table for table in tables(results, layout) if len(table.columns) > len(table.names)]
    assert len(parsed) == len(printed)
    for (_, rows), table in zip(parsed, printed, strict=True):
        plain = [[re.sub(r"\\textbf\{(.*)\}", r"\1", cell) for cell in row] for row in rows]
        assert plain[-len(table.cells) :] == [
            [re.sub(r"^-(?=\d)", "$-$", latex_text(cell)) for cell in row] for row in table.cells
        ]


@given(st.text(max_size=60))
def test_any_text_is_escaped(text: str) -> None:
    table = Table(text, ("model", "a"), ((text, "1.00"), (HOSTILE, "-2.00±1.00")), notes=(text,))
    latex_rows(tables_as_latex([table], [text + "\n\\end{document}"]))
    (row, *_) = [line for line in tables_as_markdown([table], []).splitlines() if "1.00 |" in line]
    assert len(re.findall(r"(?<!\\)\|", row.replace("\\\\", ""))) == 3


def test_bold_is_the_best_and_what_its_own_interval_reaches(results: Results) -> None:
    (table,) = tables(results, "kim")
    column = table.columns.index("far-a FPR95 (ID positive)")
    rows = results.rows(metric="fpr95_id_positive", group="far-a")
    best = min(row["value"] for row in rows)
    reach = {(row["model"], row["detector"]) for row in rows if row["lo"] <= best}
    bold = {table.cells[r][:2] for r, c in table.bold if c == column}
    assert bold == reach
    assert 1 < len(reach) < len(rows)
    assert table.bold_rule.endswith("values whose interval over images includes it")
    ((caption, parsed),) = latex_rows(results.to_latex("kim"))
    assert "Bold: the best of each column, and values whose interval over images includes it." in caption
    texts = [row for row in parsed if row[2] == "\\textbf{" + row[2][8:]]
    assert texts
    assert results.to_markdown("kim").count("**") == 2 * len(table.bold)


def test_without_intervals_only_the_best_is_bold() -> None:
    (table,) = tables(of_sets(SETS), "kim")
    column = table.columns.index("near-a AUROC")
    values = [float(row[column]) for row in table.cells]
    assert {values[r] for r, c in table.bold if c == column} == {max(values)}
    assert "no intervals were computed" in table.bold_rule
    single = of_sets(SETS, models=1)
    only = Results(
        **{**vars(single), "results": single.results.filter(single.results["detector"].to_numpy() == "mcp")}
    )
    assert tables(only, "kim")[0].bold == frozenset()


def test_runs_of_a_model_average_their_intervals() -> None:
    manifest = fake_manifest(SETS, name="digits")
    networks = [fake_run(manifest, seed, model="one", splits=("test",)) for seed in (0, 1)]
    networks = [replace(run, model_key=f"{run.name}-key") for run in networks]
    held = evaluate_runs(manifest, networks, "mcp,energy", options=MetricOptions(replicates=50))
    (table,) = tables(held, "kim")
    assert "averaged over the runs of a model" in table.bold_rule
    column = table.columns.index("near-a AUROC")
    rows = {d: held.rows(metric="auroc", group="near-a", detector=d) for d in held.detectors}
    best = max(np.mean([row["value"] for row in of]) for of in rows.values())
    wanted = {d for d, of in rows.items() if np.mean([row["hi"] for row in of]) >= best}
    assert {table.cells[r][0] for r, c in table.bold if c == column} == wanted


def test_a_role_that_the_results_lack_is_named() -> None:
    held = of_sets([s for s in SETS if s[1] != "near"])
    assert missing_roles(held, "openood") == ["near"]
    for text in (
        held.to_latex("openood"),
        held.to_markdown("openood"),
        format_tables(held, "text", "openood"),
    ):
        assert "The results have no near set, so the layout openood lacks its columns." in text
    only_id = of_sets(SETS[:1])
    with raises(DataError, where="digits", naming=("abdelzad", "near")):
        only_id.to_latex("abdelzad")


def test_names_that_are_none_are_refused_with_the_nearest(results: Results) -> None:
    with raises(UnknownNameError, naming="opennood"):
        results.to_latex("opennood")
    with raises(UnknownNameError, where="--format", naming="latx"):
        format_tables(results, "latx")


def test_comparisons_have_in_bold_what_no_other_is_better_than(results: Results) -> None:
    from loaders.harness import compare

    found = compare(results, metric="auroc", on="near", bootstrap=50)
    latex_rows(found.to_latex())
    table = found.tables()[0]
    ranking = found.rankings[0]
    worse = {pair.b for pair in ranking.pairs if (pair.p_adjusted or 0) <= 1 - ranking.level}
    good = {f"{entry.model} {entry.detector}" for entry in ranking.entries} - worse
    assert {" ".join(table.cells[r][:2]) for r, c in table.bold} == good
    assert table.bold_rule in found.to_markdown()


def test_the_command_prints_and_writes(
    results: Results, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, out = tmp_path / "results", tmp_path / "table.tex"
    results.write(folder)
    stored = Results.read(folder)
    command = ["table", str(folder), "--layout", "openood", "--format"]
    assert run(app, [*command, "latex"], "unknown-eval") == 0
    assert capsys.readouterr().out == stored.to_latex("openood")
    assert run(app, [*command, "latex", "--out", str(out)], "unknown-eval") == 0
    assert out.read_text("utf-8") == stored.to_latex("openood")
    for wrong, said in (("word", "--format"), ("latex --layout nips", "layout")):
        assert run(app, ["table", str(folder), "--format", *wrong.split()], "unknown-eval") == 2
        assert said in capsys.readouterr().err
