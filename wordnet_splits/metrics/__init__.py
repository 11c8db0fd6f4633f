"""Metrics of unknown detection: pure functions on confidences, one shared sort, exact ties.

Scores are confidences: higher means more in-distribution. ``rank_counts`` sorts a score pair once, and every
metric accepts its counts in place of the arrays; ``evaluate`` computes all registered metrics from them::

    counts = rank_counts(id_scores, ood_scores, correct=predictions == labels, name="msp on svhn")
    auroc(counts), fpr95_id_positive(counts), aurc_unknown(counts)
    evaluate(counts)                                    # {"accuracy": ..., "auroc": ..., ...}
    bootstrap([ScoreSet("cifar-40", "id", id_scores, correct), ScoreSet("svhn", "far", ood_scores)])
"""

from __future__ import annotations

from wordnet_splits.metrics.calibration import (
    adaptive_calibration_error,
    brier_score,
    ece,
    ece_equal_mass,
    nll,
    static_calibration_error,
)
from wordnet_splits.metrics.counts import RankCounts, rank_counts
from wordnet_splits.metrics.draws import bootstrap_indices
from wordnet_splits.metrics.openset import (
    OscrCurve,
    ccr_at_fpr,
    gamma,
    gamma_minus,
    gamma_plus,
    oscr,
    oscr_curve,
)
from wordnet_splits.metrics.ranking import (
    aupr_in,
    aupr_out,
    auroc,
    detection_error,
    detection_error_at_tpr95,
    detection_error_min,
    fpr95_id_positive,
    fpr95_ood_positive,
    kendall_tau,
    openood_fpr95,
)
from wordnet_splits.metrics.registry import (
    METRICS,
    Metric,
    classified_metric,
    evaluate,
    get_metric,
    list_metrics,
    pair_metric,
    pooled_metric,
    register_metric,
)
from wordnet_splits.metrics.resampling import bootstrap_replicates, paired_replicates
from wordnet_splits.metrics.robustness import (
    Robustness,
    mixture_moments,
    robustness,
    robustness_score,
    run_moments,
)
from wordnet_splits.metrics.selective import (
    accuracy,
    augrc,
    aurc,
    aurc_original,
    aurc_proposed,
    aurc_unknown,
    auroc_failure,
    detection_error_failure,
    e_aurc,
    e_aurc_geifman,
    fpr95_failure,
)
from wordnet_splits.metrics.streaming import evaluate_scores
from wordnet_splits.metrics.summary import (
    ClassAuroc,
    Composition,
    NearnessBin,
    ScoreSet,
    Spread,
    auroc_by_nearness,
    auroc_per_class,
    composition,
    nearness_trend,
    pool,
    role_means,
    spread,
)
from wordnet_splits.metrics.uncertainty import (
    ClusterDesign,
    Interval,
    bootstrap,
    interval,
)

__all__ = [
    "METRICS",
    "ClassAuroc",
    "ClusterDesign",
    "Composition",
    "Interval",
    "Metric",
    "NearnessBin",
    "OscrCurve",
    "RankCounts",
    "Robustness",
    "ScoreSet",
    "Spread",
    "accuracy",
    "adaptive_calibration_error",
    "augrc",
    "aupr_in",
    "aupr_out",
    "aurc",
    "aurc_original",
    "aurc_proposed",
    "aurc_unknown",
    "auroc",
    "auroc_by_nearness",
    "auroc_failure",
    "auroc_per_class",
    "bootstrap",
    "bootstrap_indices",
    "bootstrap_replicates",
    "brier_score",
    "ccr_at_fpr",
    "classified_metric",
    "composition",
    "detection_error",
    "detection_error_at_tpr95",
    "detection_error_failure",
    "detection_error_min",
    "e_aurc",
    "e_aurc_geifman",
    "ece",
    "ece_equal_mass",
    "evaluate",
    "evaluate_scores",
    "fpr95_failure",
    "fpr95_id_positive",
    "fpr95_ood_positive",
    "gamma",
    "gamma_minus",
    "gamma_plus",
    "get_metric",
    "interval",
    "kendall_tau",
    "list_metrics",
    "mixture_moments",
    "nearness_trend",
    "nll",
    "openood_fpr95",
    "oscr",
    "oscr_curve",
    "pair_metric",
    "paired_replicates",
    "pool",
    "pooled_metric",
    "rank_counts",
    "register_metric",
    "robustness",
    "robustness_score",
    "role_means",
    "run_moments",
    "spread",
    "static_calibration_error",
]
