"""The papers that detectors come from; read by the documentation, the command line and tests."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Paper:
    """Where a method was published.

    Attributes
    ----------
    key : short name for citing, e.g. ``hendrycks2017``.
    title, authors, venue, year : as published. url : a lasting address.
    """

    key: str
    title: str
    authors: str
    venue: str
    year: int
    url: str

    def __str__(self) -> str:
        return f"{self.authors}. {self.title}. {self.venue}, {self.year}. {self.url}"


HENDRYCKS = Paper(
    "hendrycks2017",
    "A Baseline for Detecting Misclassified and Out-of-Distribution Examples in Neural Networks",
    "Hendrycks and Gimpel",
    "ICLR",
    2017,
    "https://arxiv.org/abs/1610.02136",
)
GUO = Paper(
    "guo2017",
    "On Calibration of Modern Neural Networks",
    "Guo, Pleiss, Sun and Weinberger",
    "ICML",
    2017,
    "https://arxiv.org/abs/1706.04599",
)
LIANG = Paper(
    "liang2018",
    "Enhancing the Reliability of Out-of-Distribution Image Detection in Neural Networks",
    "Liang, Li and Srikant",
    "ICLR",
    2018,
    "https://arxiv.org/abs/1706.02690",
)
SCALING = Paper(
    "hendrycks2022",
    "Scaling Out-of-Distribution Detection for Real-World Settings",
    "Hendrycks, Basart, Mazeika, Zou, Kwon, Mostajabi, Steinhardt and Song",
    "ICML",
    2022,
    "https://arxiv.org/abs/1911.11132",
)
LIU = Paper(
    "liu2020",
    "Energy-based Out-of-distribution Detection",
    "Liu, Wang, Owens and Li",
    "NeurIPS",
    2020,
    "https://arxiv.org/abs/2010.03759",
)
SUN = Paper(
    "sun2022",
    "Out-of-Distribution Detection with Deep Nearest Neighbors",
    "Sun, Ming, Zhu and Li",
    "ICML",
    2022,
    "https://arxiv.org/abs/2204.06507",
)
LEE = Paper(
    "lee2018",
    "A Simple Unified Framework for Detecting Out-of-Distribution Samples and Adversarial Attacks",
    "Lee, Lee, Lee and Shin",
    "NeurIPS",
    2018,
    "https://arxiv.org/abs/1807.03888",
)
ENSEMBLES = Paper(
    "lakshminarayanan2017",
    "Simple and Scalable Predictive Uncertainty Estimation using Deep Ensembles",
    "Lakshminarayanan, Pritzel and Blundell",
    "NeurIPS",
    2017,
    "https://arxiv.org/abs/1612.01474",
)
ABDELZAD = Paper(
    "abdelzad2020",
    "The Effect of Optimization Methods on the Robustness of Out-of-Distribution Detection Approaches",
    "Abdelzad, Czarnecki and Salay",
    "arXiv",
    2020,
    "https://arxiv.org/abs/2006.14584",
)
RECALCATI = Paper(
    "recalcati",
    "Toward a Realistic Benchmark for Out-of-Distribution Detection",
    "Recalcati, Garcea, Piano, Lamberti and Morra",
    "DSAA",
    2023,
    "https://arxiv.org/abs/2404.10474",
)
