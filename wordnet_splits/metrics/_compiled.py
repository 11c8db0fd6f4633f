"""Draws and counts of a bootstrap, compiled by numba (extra ``fast``): the same integers as without it."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_30, _27, _31, _32 = (np.uint64(bits) for bits in (30, 27, 31, 32))


@numba.njit(nogil=True, cache=True)
def add_draws(states: Any, order: Any, starts: Any, sizes: Any, weights: Any) -> None:
    """Add 1 to the weight of an image each time it is drawn (see `draws`).

    Parameters
    ----------
    states : (replicates,) uint64, where the generator starts.
    order, starts, sizes : (n,) of `SetDraws`.
    weights : (replicates, n) uint16, zero.
    """
    for replicate in range(states.shape[0]):
        state = states[replicate]
        for place in range(order.shape[0]):
            state += _GOLDEN
            word = (state ^ (state >> _30)) * _MIX_1
            word = (word ^ (word >> _27)) * _MIX_2
            word = (word ^ (word >> _31)) >> _32
            rank = np.int64((word * np.uint64(sizes[place])) >> _32)
            weights[replicate, order[starts[place] + rank]] += 1


@numba.njit(nogil=True, cache=True)
def add_pairs(
    order: Any, kinds: Any, ends: Any, weights: Any, n_ood: Any, needed_id: Any, needed_ood: Any, sums: Any
) -> None:
    """Add up the integers behind AUROC and FPR95, without the counts at each score.

    A loop over replicates reads neighbouring memory: the processor fetches one line of its cache per image,
    and adds several replicates by one instruction.

    Parameters
    ----------
    order, kinds, ends : (n,) of `Ranked`.
    weights : (n, replicates) uint16.
    n_ood, needed_id, needed_ood : (replicates,) int64, the weight of OOD images, and the least weights that
        are 95% of either side.
    sums : (3, replicates) int64, zero: twice the pairs of an ID image above an OOD image, ties counting one
        half; OOD images at or above the threshold that accepts 95% of ID; ID images at or below that which
        rejects 95% of OOD.
    """
    replicates = weights.shape[1]
    above, outside = np.zeros(replicates, np.int64), np.zeros(replicates, np.int64)
    id_tie, ood_tie = np.zeros(replicates, np.int64), np.zeros(replicates, np.int64)
    wins, accepted, rejected = sums[0], sums[1], sums[2]
    for place in range(order.shape[0]):
        weight = weights[order[place]]
        is_ood = kinds[place] == 2
        if ends[place] and (place == 0 or ends[place - 1]):  # the only image with its score
            if is_ood:
                for r in range(replicates):
                    ood = np.int64(weight[r])
                    wins[r] += 2 * above[r] * ood
                    accepted[r] += ood if above[r] < needed_id[r] else 0
                    outside[r] += ood
            else:
                for r in range(replicates):
                    inside = np.int64(weight[r])
                    rejected[r] += inside if n_ood[r] - outside[r] < needed_ood[r] else 0
                    above[r] += inside
            continue
        tie = ood_tie if is_ood else id_tie
        for r in range(replicates):
            tie[r] += weight[r]
        if ends[place]:
            for r in range(replicates):
                wins[r] += ood_tie[r] * (2 * above[r] + id_tie[r])
                accepted[r] += ood_tie[r] if above[r] < needed_id[r] else 0
                outside[r] += ood_tie[r]
                rejected[r] += id_tie[r] if n_ood[r] - outside[r] < needed_ood[r] else 0
                above[r] += id_tie[r]
                id_tie[r] = 0
                ood_tie[r] = 0


@numba.njit(nogil=True, cache=True)
def aurc_terms(cum_all: Any, cum_errors: Any, harmonic: Any, terms: Any) -> None:
    """Write the terms of `selective._aurc_of`, in the same order of operations.

    Parameters
    ----------
    cum_all, cum_errors : (replicates, m) int64.
    harmonic : (counts,) int64.
    terms : (replicates, m) float64.
    """
    for replicate in range(cum_all.shape[0]):
        before, errors_before = np.int64(0), np.int64(0)
        for slot in range(cum_all.shape[1]):
            total, errors = cum_all[replicate, slot], cum_errors[replicate, slot]
            share = (errors - errors_before) / max(total - before, np.int64(1))
            terms[replicate, slot] = (errors - share * total) * (harmonic[total] - harmonic[before])
            before, errors_before = total, errors


@numba.njit(nogil=True, cache=True)
def trapezoid_terms(cum_all: Any, cum_errors: Any, terms: Any) -> None:
    """Write the terms of `selective._trapezoid_aurc`; parameters as of `aurc_terms`."""
    for replicate in range(cum_all.shape[0]):
        before, risk_before = np.int64(0), 0.0
        for slot in range(cum_all.shape[1]):
            total = cum_all[replicate, slot]
            risk = cum_errors[replicate, slot] / max(total, np.int64(1))
            terms[replicate, slot] = (total - before) * (risk + (risk_before if before else risk))
            before, risk_before = total, risk
