"""Selective prediction: areas under risk and coverage, on ID samples alone or pooled with OOD samples.

Samples are ranked by confidence; the risk of a sample is 0 for a correctly classified ID sample and 1 for
an error. On ID alone errors are misclassifications; in the pooled metrics OOD samples are errors too. Values
are fractions (papers print AURC x 1000). Lower is better except for `accuracy` and `auroc_failure`.
`auroc_failure`, `fpr95_failure` and `detection_error_failure` rank correct against wrong ID samples.

AURC has two rules for ties. By default the errors of a tie are spread evenly over it and the risk is averaged
over every rank: the mean over all orders within the tie. fd-shifts (`rc_stats.py` at 56276af) uses the risk
at the end of each tie only and joins these points by straight lines (``trapezoid``): the fewer distinct
confidences, the more the two differ, for any number of samples. Without ties they differ by (r_1 - r_n)/(2n),
where r_k is the risk among the k most confident.

References
----------
Geifman, Uziel and El-Yaniv, Bias-Reduced Uncertainty Estimation, ICLR 2019 (AURC, E-AURC). Traub et al.,
Overcoming Common Flaws in the Evaluation of Selective Classification Systems, NeurIPS 2024 (AUGRC). Jaeger
et al., A Call to Reflect on Evaluation Practices for Failure Detection, ICLR 2023 (fd-shifts, `proposed` and
`original`). Kim, Koo and Hwang, A Unified Benchmark for the Unknown Detection Capability of Deep Neural
Networks (pooled AURC). Recalcati et al., Toward a Realistic Benchmark for Out-of-Distribution Detection, 2023
(`fpr95_failure` and `detection_error_failure`, table VII).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from wordnet_splits.base.errors import DataError
from wordnet_splits.metrics.counts import Array, RankCounts, Scores, as_counts, count_below, ratio, steps
from wordnet_splits.metrics.ranking import auroc, detection_error, fpr95_id_positive
from wordnet_splits.metrics.registry import (
    ID_CORRECT,
    classified_metric,
    pair_metric,
    pooled_metric,
    register_metric,
)

_FIXED = 57  # fractional bits of the harmonic numbers, which stay below 2^6 for any feasible count


@lru_cache(maxsize=2)
def _harmonic_numbers(bits: int) -> Array:
    """Return H_0 .. H_(2^bits - 1), H_k = 1 + 1/2 + ... + 1/k, as integers in units of 2^-57.

    In fixed point, differences H_b - H_a are exact to 2^-58 per term; floating point would lose digits that
    matter in AURC, where they are multiplied by counts.
    """
    k = np.arange(1, 2**bits)
    return np.concatenate([[0], np.cumsum(np.rint(2.0**_FIXED / k).astype(np.int64))])


def _harmonic(count: Array, largest: Array) -> Array:
    """Return H_count in units of 2^-57; no count exceeds the greatest of ``largest``."""
    table = _harmonic_numbers(int(np.max(largest, initial=1)).bit_length())
    return np.asarray(table.take(count))


def _aurc_of(pair: RankCounts) -> Array:
    """Return the AURC of counts whose "ID" side are correct samples and whose "OOD" side are errors.

    A tie group of m samples with s errors, after N samples with E errors, adds the sum over j = 1..m of
    (E + j s/m)/(N + j), which is s + (E - N s/m) (H_(N+m) - H_N); and E - N s/m is the same number for the
    counts E + s and N + m at the end of the group.
    """
    harmonic = _harmonic_numbers(int(np.max(pair.cum_all[..., -1], initial=1)).bit_length())
    if pair.loops is not None:
        excess = np.empty(pair.cum_all.shape)
        pair.loops.aurc_terms(pair.cum_all, pair.cum_ood, harmonic, excess)
    else:
        excess = pair.ood_steps / np.maximum(pair.all_steps, 1)
        excess *= pair.cum_all  # in place: memory for a million counts costs more than the arithmetic
        np.subtract(pair.cum_ood, excess, out=excess)
        excess *= steps(harmonic.take(pair.cum_all))
    return ratio(pair.n_ood + np.sum(excess, axis=-1) * 2.0**-_FIXED, pair.cum_all[..., -1])


def _trapezoid_aurc(pair: RankCounts) -> Array:
    """Return the area under lines between the risks at the ends of ties, constant before the first."""
    if pair.loops is not None:
        doubled = np.empty(pair.cum_all.shape)
        pair.loops.trapezoid_terms(pair.cum_all, pair.cum_ood, doubled)
    else:
        risk = pair.cum_ood / np.maximum(pair.cum_all, 1)
        doubled = risk.copy()
        doubled[..., 1:] += risk[..., :-1]
        first = count_below(pair.cum_all, np.array(1))[..., None]  # tie that has a sample
        np.put_along_axis(doubled, first, 2 * np.take_along_axis(risk, first, axis=-1), axis=-1)
        doubled *= pair.all_steps
    area = np.sum(doubled, axis=-1)
    return ratio(area, 2 * pair.cum_all[..., -1])


def _aurc_by(pair: RankCounts, trapezoid: bool) -> Array:
    return _trapezoid_aurc(pair) if trapezoid else pair.cached(_aurc_of)


def _best_aurc(pair: RankCounts) -> Array:
    """Return the AURC of the best order, all errors last: (1/n) sum over j of j/(n - E + j)."""
    correct, wrong = pair.n_id, pair.n_ood
    total = correct + wrong
    reciprocals = (_harmonic(total, total) - _harmonic(correct, total)) * 2.0**-_FIXED
    return ratio(wrong - correct * reciprocals, total)


def _weighted_aurc(samples: Array, weight: Array, risk: Array) -> Array:
    """Return the AURC of m tie groups from their (m,) numbers of samples, weights and weights of errors.

    Errors are spread evenly over a group, as in `_aurc_of`: the j-th of M samples has risk
    (E + j S/M)/(N + j W/M) and weight W/M, where N and E are weight and errors of the groups before.
    """
    last = np.cumsum(samples)
    share = (np.arange(1, last[-1] + 1) - np.repeat(last - samples, samples)) / np.repeat(samples, samples)
    before, errors = np.cumsum(weight) - weight, np.cumsum(risk) - risk
    position = np.repeat(before, samples) + share * np.repeat(weight, samples)
    failed = np.repeat(errors, samples) + share * np.repeat(risk, samples)
    each = np.repeat(weight / np.maximum(samples, 1), samples)
    return np.asarray(np.sum(each * failed / position) / np.sum(weight))


@classified_metric(higher_is_better=True)
def accuracy(counts: RankCounts) -> Array:
    """Share of ID samples classified correctly. Higher is better, range [0, 1]; independent of confidence."""
    return ratio(counts.correct[..., -1], counts.n_id)


@classified_metric(higher_is_better=False, variants={"aurc_trapezoid": {"trapezoid": True}})
def aurc(counts: RankCounts, trapezoid: bool = False) -> Array:
    """Area under risk and coverage of ID samples: mean over k of the error rate of the k most confident.

    In a tie group of m samples with s errors, after N samples with E errors, the risk at the j-th is
    (E + j s/m)/(N + j), its expectation over the orders of the tie. Lower is better, range [0, 1].

    Parameters
    ----------
    trapezoid : use fd-shifts' rule for ties (its `aurc`): the risks at their ends, (E + s)/(N + m), joined by
        straight lines over coverage.

    Example
    -------
    >>> round(aurc([0.9, 0.8, 0.7, 0.6], [1, 0, 1, 1]), 6)  # (0 + 1/2 + 1/3 + 1/4)/4
    0.270833
    """
    return _aurc_by(counts.failures, trapezoid)


@classified_metric(higher_is_better=False)
def e_aurc(counts: RankCounts) -> Array:
    """AURC of ID samples minus that of the best order of the same errors (the discrete optimum).

    Lower is better, 0 when every error is less confident than every correct sample. Range [0, 1).
    """
    excess = counts.failures.cached(_aurc_of) - _best_aurc(counts.failures)
    return np.asarray(np.maximum(excess, 0.0))  # may be negative by rounding if the order is the best


@classified_metric(higher_is_better=False)
def e_aurc_geifman(counts: RankCounts) -> Array:
    """AURC of ID samples minus Geifman's optimum err + (1 - err) ln(1 - err), which is 1 at err = 1.

    The continuous approximation of `e_aurc`; the difference is O(1/n). fd-shifts subtracts the same optimum
    from its AURC, `aurc_trapezoid`. Lower is better.
    """
    pair = counts.failures
    error = ratio(pair.n_ood, pair.n_id + pair.n_ood)
    right = 1 - error
    entropy = right * np.log(np.where(right > 0, right, 1.0))  # (1 - err) ln(1 - err) -> 0 at err = 1
    return np.asarray(pair.cached(_aurc_of) - error - entropy)


@classified_metric(higher_is_better=False)
def augrc(counts: RankCounts) -> Array:
    """Area under generalised risk, (errors among the k most confident)/n, over coverage k/n (Traub et al.).

    Trapezoid through (0, 0); equals (1 - AUROC_f) acc (1 - acc) + (1 - acc)^2/2, where AUROC_f is
    `auroc_failure`. Lower is better, range [0, 0.5]: 0 at accuracy 1, 0.5 at accuracy 0.
    """
    pair = counts.failures
    total = pair.n_id + pair.n_ood
    doubled = np.sum(pair.all_steps * (2 * pair.cum_ood - pair.ood_steps), axis=-1)
    return ratio(doubled, 2 * total * total)


def _auroc_failure(counts: RankCounts) -> Array:
    return auroc.kernel(counts.failures)


@pooled_metric(higher_is_better=False, variants={"aurc_proposed_trapezoid": {"trapezoid": True}})
def aurc_proposed(counts: RankCounts, trapezoid: bool = False) -> Array:
    """AURC over correct ID (risk 0) and OOD (risk 1) samples, without misclassified ID samples.

    The pooling that fd-shifts calls `proposed`, with ties spread evenly as in `aurc`. Lower is better, range
    [0, 1]. For other metrics of the same pooling pass ``counts.proposed``.

    Parameters
    ----------
    trapezoid : use fd-shifts' rule for ties, as in `aurc`.
    """
    return _aurc_by(counts.proposed, trapezoid)


@pair_metric(higher_is_better=False, variants={"aurc_original_trapezoid": {"trapezoid": True}})
def aurc_original(counts: RankCounts, trapezoid: bool = False) -> Array:
    """AURC over all ID samples (risk 0, classified correctly or not) and OOD samples (risk 1).

    The pooling that fd-shifts calls `original`, with ties spread evenly as in `aurc`. Lower is better, range
    [0, 1].

    Parameters
    ----------
    trapezoid : use fd-shifts' rule for ties, as in `aurc`.
    """
    return _aurc_by(counts, trapezoid)


@register_metric("auroc_failure", _auroc_failure, higher_is_better=True, needs=ID_CORRECT)
def auroc_failure(
    confidence: Scores | RankCounts, correct: Scores | None = None, *, name: str | None = None
) -> float:
    """AUROC of misclassification detection: correct ID samples (positive) against wrong ones.

    Higher is better, range [0, 1]. DataError if no sample or every sample is correct. For other ranking
    metrics of misclassification detection pass ``counts.failures``, as in ``aupr_in(counts.failures)``.
    """
    counts = as_counts(confidence, correct=correct, name=name).require(*ID_CORRECT)
    if not counts.failures.n_id or not counts.failures.n_ood:
        raise DataError(
            "misclassification AUROC requires correct and wrong samples, and one kind is missing", where=name
        )
    return float(_auroc_failure(counts))


@classified_metric(higher_is_better=False)
def fpr95_failure(counts: RankCounts) -> Array:
    """Share of wrong ID samples accepted by the highest threshold that accepts 95% of the correct ones.

    `fpr95_id_positive` of correct ID samples (positive) against wrong ones. Lower is better, range [0, 1];
    NaN if every sample is correct or every sample is wrong.

    Example
    -------
    >>> fpr95_failure([0.9, 0.8, 0.7, 0.6], [1, 0, 1, 0])  # 0.7 accepts both correct and one of two wrong
    0.5
    """
    return fpr95_id_positive.kernel(counts.failures)


@classified_metric(higher_is_better=False)
def detection_error_failure(counts: RankCounts) -> Array:
    """Smallest 0.5 (1 - TPR) + 0.5 FPR with TPR >= .95 of correct ID samples (positive) against wrong ones.

    `detection_error` of misclassification detection. Lower is better, range [0, 0.5]; NaN if every sample is
    correct or every sample is wrong.
    """
    return detection_error.kernel(counts.failures)


@pooled_metric(higher_is_better=False)
def aurc_unknown(counts: RankCounts, prevalence: float | None = None) -> Array:
    """AURC over pooled ID and OOD samples; misclassified ID and every OOD sample have risk 1 (Kim, primary).

    Depends on the share of OOD samples: report it with its `composition`. Lower is better, range [0, 1].

    Parameters
    ----------
    confidence, correct : (n_id,) of all ID test samples.
    ood_confidence : (n_ood,) of near and all far sets.
    prevalence : share of OOD to assume, in (0, 1): each ID sample then has weight (1 - prevalence)/n_id and
        each OOD sample prevalence/n_ood. By default the actual share.
    """
    if prevalence is None:
        return _aurc_of(counts.unknowns)
    if not 0 < prevalence < 1:
        raise DataError(
            f"prevalence must be between 0 and 1, not {prevalence}",
            where=counts.name,
            hint="at 0 it would equal `aurc`, at 1 it would always be 1",
        )
    total = counts.n_id + counts.n_ood
    of_id, of_ood = (1 - prevalence) * total / counts.n_id, prevalence * total / counts.n_ood
    wrong = counts.id_steps - counts.failures.id_steps
    weight = of_id * counts.id_steps + of_ood * counts.ood_steps
    risk = of_id * wrong + of_ood * counts.ood_steps
    return _weighted_aurc(counts.all_steps, weight, risk)
