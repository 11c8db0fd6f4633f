"""Detectors on the logits of an image, or on the logits after ODIN's perturbation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pydantic import NonNegativeFloat, PositiveFloat
from scipy.optimize import minimize_scalar

from wordnet_splits.base.errors import DataError

from ..data.arrays import Array, Arrays, Head
from ..data.parameters import parameters
from .registry import PAPERS, SharedScores, register
from .softmax import (
    energy,
    gaps,
    gaps_and_top,
    log_max_softmax,
    log_of_others,
    log_others,
    log_sum_exp,
    logits_of,
    maxima,
    products,
    scaled_odds,
    softplus,
)

TEMPERATURES = (1e-2, 1e2)
"""Bounds of a fitted temperature; the ranking does not change beyond them."""
ODIN_LOGITS = "odin[T={T:g},eps={eps:g}]/logits"
ODIN_SWEEP = {"T": (1.0, 10.0, 100.0, 1000.0), "eps": (0.0014, 0.0028)}


@register(paper=PAPERS["hendrycks2017"], needs=("logits",), aliases=("mcp",), threads=True)
@parameters
class MSP:
    """Maximum softmax (MSP, MCP), ranked by its log, which never saturates."""

    def score(self, state: None, data: Arrays) -> Array:
        """Return -log1p(sum over j != top of exp(z_j - z_top))."""
        return log_max_softmax(*logits_of(data, dtype=np.float32))


@register("msp_float32", paper=PAPERS["hendrycks2017"], needs=("logits",), threads=True)
@parameters
class MSPFloat32:
    """Maximum softmax in float32, ties at 1 included (Abdelzad; Palechor's eq. 6)."""

    def score(self, state: None, data: Arrays) -> Array:
        """Return the maximum probability over the classes, each step in float32."""
        logits = np.asarray(data["logits"], dtype=np.float32)
        columns = logits
        if "background" in data:
            columns = np.column_stack([logits, np.asarray(data["background"], dtype=np.float32)])
        peak = columns.max(axis=1, keepdims=True)
        powers = np.exp(columns - peak)
        top = powers[:, : logits.shape[1]].max(axis=1)
        return np.asarray(top / powers.sum(axis=1, dtype=np.float32))


@register(paper=PAPERS["guo2017"], needs=("logits", "labels"), fit_on="val", threads=True)
@parameters
class TempScale:
    """Maximum softmax at the temperature of least NLL on ID validation data."""

    def fit(self, data: Arrays, head: Head | None) -> float:
        """Return the temperature; images without a label are left out."""
        labels = np.asarray(data["labels"])
        labelled = labels >= 0
        if not labelled.any():
            raise DataError("no validation image has a label, so no temperature can be fitted")
        logits, background = logits_of(data)
        logits, labels = logits[labelled], labels[labelled]
        background = None if background is None else background[labelled]
        low, high = np.log(TEMPERATURES)

        def loss(log_temperature: float) -> float:
            """Return the mean negative log-likelihood of the labels, summed in sorted order."""
            temperature = float(np.exp(log_temperature))
            below = gaps(logits, temperature)
            columns = below
            if background is not None:
                columns = np.column_stack([below, (background - logits.max(axis=1)) / temperature])
            losses = log_sum_exp(columns) - below[np.arange(len(labels)), labels]
            return float(np.mean(np.sort(losses)))

        optimum = minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": 1e-9})
        return float(np.exp(optimum.x))

    def score(self, state: float, data: Arrays) -> Array:
        """Return the maximum softmax at temperature ``state``, as its odds on a log scale."""
        return scaled_odds(*logits_of(data, classes=2, dtype=np.float32), [state])[0]


@register(
    paper=PAPERS["liang2018"],
    needs=("logits",),
    sweep={"T": (1, 10, 100, 1000)},
    fit_parameters=(),
    threads=True,
)
@parameters
class TS(SharedScores):
    """Maximum softmax at a fixed temperature, without perturbation (Recalcati's TS, Abdelzad's ODIN)."""

    T: PositiveFloat = 1000.0

    @staticmethod
    def score_each(detectors: Sequence[TS], state: None, data: Arrays) -> list[Array]:
        """Return the scores at each T; differences from the top logit are computed once."""
        return scaled_odds(
            *logits_of(data, classes=2, dtype=np.float32), [detector.T for detector in detectors]
        )


@register(paper=PAPERS["hendrycks2022"], needs=("logits",), aliases=("mlv",), threads=True)
@parameters
class MLS:
    """Maximum logit (MLS, MLV)."""

    def score(self, state: None, data: Arrays) -> Array:
        """Return the greatest logit."""
        return maxima(logits_of(data, dtype=np.float32)[0])


@register(paper=PAPERS["abdelzad2020"], needs=("logits",), threads=True)
@parameters
class Entropy:
    """Negative entropy of the softmax, in nats."""

    def score(self, state: None, data: Arrays) -> Array:
        """Return -H(p), a sum of terms with equal sign, so that values near 0 keep their digits."""
        logits, background = logits_of(data, dtype=np.float32)
        if background is not None:
            raise DataError("entropy is not defined once a background column is dropped", hint="use msp")
        below, top = gaps_and_top(logits)
        powers = np.exp(below)
        log_total = softplus(log_of_others(below, top, powers))
        # 0 at the top class; exp underflows before the product matters
        return np.asarray(products(powers, below) * np.exp(-log_total) - log_total)


@register(paper=PAPERS["abdelzad2020"], needs=("logits",), threads=True)
@parameters
class Margin:
    """Difference of the two greatest softmax probabilities, p1 - p2."""

    def score(self, state: None, data: Arrays) -> Array:
        """Return -log(1 - (p1 - p2)): 0 at a tie, and no saturation where p1 is 1 to the last bit."""
        logits, background = logits_of(data, classes=2)
        rows = np.arange(len(logits))
        below = gaps(logits)
        top = logits.argmax(axis=1)
        below[rows, top] = -np.inf
        below[rows, below.argmax(axis=1)] += np.log(2)  # 1 - (p1 - p2) = 2 p2 + p3 + ...
        if background is not None:
            below = np.column_stack([below, background - logits[rows, top]])
        return softplus(log_others(logits, background)) - log_sum_exp(below)


@register(
    paper=PAPERS["liu2020"], needs=("logits",), sweep={"T": (0.1, 1, 10, 100)}, aliases=("ebo",), threads=True
)
@parameters
class Energy:
    """Negative free energy of the logits, T logsumexp(z/T)."""

    T: PositiveFloat = 1.0

    def score(self, state: None, data: Arrays) -> Array:
        """Return T log(sum over the classes of exp(z_j/T)); the sum leaves out a background class."""
        return energy(data["logits"], self.T)


@parameters
class _Perturbed:
    """Parameters of the perturbation x' = x - eps sign(-gradient) / sd per channel."""

    T: PositiveFloat = 1000.0
    eps: NonNegativeFloat = 0.0014

    @property
    def array(self) -> str:
        """Name of the logits of the perturbed images."""
        return ODIN_LOGITS.format(T=self.T, eps=self.eps)


@register(paper=PAPERS["liang2018"], needs=(ODIN_LOGITS,), sweep=ODIN_SWEEP)
@parameters
class ODIN(_Perturbed):
    """Maximum softmax at temperature T after a step that raises it."""

    def score(self, state: None, data: Arrays) -> Array:
        """Return the maximum softmax at T of the perturbed image, as its odds on a log scale."""
        return scaled_odds(*logits_of(data, self.array, classes=2), [self.T])[0]


@register("ip_ts_mlv", paper=PAPERS["recalcati"], needs=(ODIN_LOGITS,), sweep=ODIN_SWEEP)
@parameters
class PerturbedMaxLogit(_Perturbed):
    """Maximum logit after ODIN's perturbation (Recalcati's IP TS MLV)."""

    def score(self, state: None, data: Arrays) -> Array:
        """Return the greatest logit of the perturbed image."""
        return maxima(logits_of(data, self.array)[0])
