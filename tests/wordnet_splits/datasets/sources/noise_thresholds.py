"""Recomputes the shipped Gaussian thresholds with decimal arithmetic alone; run it to print the table.

P(x < c) for x of N(0.5, 1) is Phi(z), z = c - 0.5, by the series (Abramowitz and Stegun 26.2.10)
Phi(z) = 1/2 + 1/sqrt(2 pi) * sum over n of (-1)^n z^(2n+1) / (n! 2^n (2n+1)), whose terms shrink at least
eightfold for |z| <= 1/2. 60 digits are kept where 20 are needed.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal, localcontext

HEADER = """\
# Thresholds of Gaussian noise: N(0.5, 1) clipped to [0, 1] (parameters of Abdelzad et al. 2020), as uint8 = floor(255 x + 0.5).
# A 64-bit word has the value v = number of thresholds not above it; threshold k = ceil(2^64 * Phi((k - 0.5) / 255 - 0.5)).
# Computed by tests/wordnet_splits/datasets/sources/noise_thresholds.py with 60 decimal digits.
value\tthreshold
"""  # noqa: E501 - the table is written as it is


def _arctan_of_inverse(n: int) -> Decimal:
    total, power, k = Decimal(0), Decimal(1) / n, 0
    while power > Decimal(10) ** -65:
        total += (-1) ** k * power / (2 * k + 1)
        power /= n * n
        k += 1
    return total


def _phi(z: Decimal, root_two_pi: Decimal) -> Decimal:
    total, term, n = Decimal(0), z, 0
    while abs(term) > Decimal(10) ** -65:
        total += term / (2 * n + 1)
        n += 1
        term *= -z * z / (2 * n)
    return Decimal(1) / 2 + total / root_two_pi


def exact_thresholds() -> list[int]:
    """Return the 255 thresholds, from the definition."""
    with localcontext() as context:
        context.prec = 60
        pi = 4 * (4 * _arctan_of_inverse(5) - _arctan_of_inverse(239))  # Machin 1706
        root_two_pi = (2 * pi).sqrt()
        edges = [(k - Decimal("0.5")) / 255 - Decimal("0.5") for k in range(1, 256)]
        scaled = [2**64 * _phi(z, root_two_pi) for z in edges]
        return [int(word.to_integral_value(ROUND_CEILING)) for word in scaled]


if __name__ == "__main__":
    print(HEADER + "".join(f"{k}\t{t}\n" for k, t in enumerate(exact_thresholds(), 1)), end="")
