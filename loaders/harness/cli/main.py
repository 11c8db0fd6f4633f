"""The command ``unknown-eval``: evaluate models on benchmarks, check results, list detectors, train."""

from __future__ import annotations

from wordnet_splits.base.terminal.options import add_command, make_family, make_program
from wordnet_splits.base.terminal.runner import start

from .comparing import compare_results, correlate_nearness, plot_results, report_results
from .detectors import show_detectors
from .hierarchy import print_hierarchy
from .results import (
    check_results_folder,
    export_scores,
    print_result_tables,
    recompute_metrics,
    remeasure_results,
    submit_results,
)
from .run import merge_shards, print_image_ids, run_evaluation
from .shipping import export_detector, score_images
from .train import EXAMPLE, audit_training_methods, show_recipes, train

RUN = "unknown-eval run --benchmark digits --model trained:models/digits --out results"

app = make_program(
    "unknown-eval",
    "Measure what a vision model does not know: any model and detector on any frozen benchmark.",
    [EXAMPLE, RUN],
)

IDS = "unknown-eval ids digits uniform"
MERGE = "unknown-eval merge-shards"
CHECK = "unknown-eval check-results results"
REMEASURE = "unknown-eval remeasure results"
TABLE = "unknown-eval table results"
SUBMIT = "unknown-eval submit results --by me --name digits-linear --to entries"
COMPARE = "unknown-eval compare results"
NEARNESS = "unknown-eval nearness results"
HIERARCHY = "unknown-eval hierarchy results --rules threshold"
REPORT = "unknown-eval report results"
EXPORT = "unknown-eval export-detector results --detector msp --false-alarms 0.05"
SCORE = "unknown-eval score detector pictures"
SCORES = "unknown-eval scores export results --out scores"
RECOMPUTE = "unknown-eval recompute --scores scores --metric auroc"
TWO_DETECTORS = "--detectors 'msp,knn[k=10]' --json"

COMMANDS = (
    ("train", train, [EXAMPLE, f"{EXAMPLE} --seeds 0-1 --device cpu"]),
    ("recipes", show_recipes, ["unknown-eval recipes", "unknown-eval recipes --json"]),
    (
        "audit-method",
        audit_training_methods,
        ["unknown-eval audit-method logitnorm --json", "unknown-eval audit-method confbranch rotpred"],
    ),
    (
        "run",
        run_evaluation,
        [f"{RUN} --shard 1/1", f"{RUN} --detectors msp,knn[k=10] --bootstrap 100 --json"],
    ),
    ("merge-shards", merge_shards, [f"{MERGE} --keep", f"{MERGE} build/activations --json"]),
    ("export-detector", export_detector, [EXPORT, f"{EXPORT} --store build/activations --overwrite --json"]),
    ("score", score_images, [SCORE, f"{SCORE} --out scored.csv --json"]),
    ("ids", print_image_ids, [IDS, f"{IDS} --json"]),
    ("check-results", check_results_folder, [CHECK, f"{CHECK} --json"]),
    ("remeasure", remeasure_results, [REMEASURE, f"{REMEASURE} --bootstrap 100 --out again --json"]),
    (
        "table",
        print_result_tables,
        [TABLE, f"{TABLE} --format latex --layout openood --out table.tex --json"],
    ),
    ("submit", submit_results, [SUBMIT, f"{SUBMIT} --note 'One layer.' --json"]),
    ("compare", compare_results, [COMPARE, f"{COMPARE} --metric auroc --on near {TWO_DETECTORS}"]),
    ("nearness", correlate_nearness, [NEARNESS, f"{NEARNESS} {TWO_DETECTORS}"]),
    (
        "hierarchy",
        print_hierarchy,
        [HIERARCHY, f"{HIERARCHY} --tree --bootstrap 20 --out named.csv --json"],
    ),
    (
        "plot",
        plot_results,
        [
            "unknown-eval plot --what list",
            "unknown-eval plot results --what roc --group uniform --out roc.svg",
        ],
    ),
    ("report", report_results, [REPORT, f"{REPORT} --bootstrap 20 --out page.html --json"]),
    ("recompute", recompute_metrics, [RECOMPUTE, f"{RECOMPUTE} --detectors msp --out auroc.csv --json"]),
    ("detectors", show_detectors, ["unknown-eval detectors", "unknown-eval detectors 'm*' --json"]),
)
"""Name, function and examples of each command."""

for name, function, examples in COMMANDS:
    add_command(app, name, function, examples)

SCORES_EXAMPLES = [SCORES, f"{SCORES} --overwrite --json"]
scores = make_family(
    app, "scores", "The scores of many networks and detectors as one table.", SCORES_EXAMPLES
)
add_command(scores, "export", export_scores, SCORES_EXAMPLES)


def main() -> None:
    """Run ``unknown-eval``."""
    start(app, "unknown-eval")


if __name__ == "__main__":
    main()
