"""Headings of tables: one for each metric, read back by `Results.values`."""

from __future__ import annotations

from loaders.harness.evaluation.run_evaluation import evaluate_runs
from loaders.harness.results.metric_rows import LABELS, key_of_label, label_of
from loaders.harness.results.tables import layouts, tables
from tests.loaders.harness.evaluation.fake_runs import OPEN_SET, fake_run
from wordnet_splits.metrics import list_metrics


def test_no_label_is_of_two_metrics() -> None:
    labels = [label_of(metric) for metric in {*LABELS, *list_metrics()}]
    assert len({label.casefold() for label in labels}) == len(labels)
    for metric in (*LABELS, "auroc[full-spectrum]", "youden"):
        assert key_of_label(label_of(metric)) == key_of_label(metric) == metric


def test_no_column_of_a_table_is_headed_as_another() -> None:
    results = evaluate_runs(OPEN_SET, [fake_run(OPEN_SET)], "msp")
    for layout in layouts():
        for table in tables(results, layout):
            assert len({*table.columns}) == len(table.columns), table.title


def test_values_take_keys_and_labels() -> None:
    results = evaluate_runs(OPEN_SET, [fake_run(OPEN_SET)], "msp")
    for metric, group in (("aurc_unknown", "(pooled)"), ("fpr95_id_positive", "near-a")):
        assert results.values(label_of(metric), group=group) == results.values(metric, group=group)
