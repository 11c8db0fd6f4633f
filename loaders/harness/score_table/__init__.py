"""The open score table: the confidence of every image by every detector of every network, as Parquet.

::

    scores.json                                      sealed: benchmarks, checksums, how images are numbered
    images.parquet                                   benchmark, image, source, image_id, group, role, label
    models.parquet                                   benchmark, model, network, run, entry, model_key
    confidences/benchmark=B/model=M/ENTRY.parquet    image, detector, confidence, correct
    predictions/benchmark=B/model=M/ENTRY.parquet    image, prediction, probabilities of the network itself
"""

from __future__ import annotations

from wordnet_splits.base.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
