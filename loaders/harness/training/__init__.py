"""The reference trainer: methods of `loaders.harness.training.methods`, runs that resume.

From Python::

    roots = {"cifar100": "data/cifar-100-python"}
    train_recipe("kim-cifar", "unknown-cifar-tinyval", "models", epochs=20, seeds=range(5), roots=roots)
    module = load_checkpoint("models/unknown-cifar-tinyval/kim-cifar-resnet20-e20-s0")

On the command line: ``unknown-eval train`` and
``unknown-eval list recipes``.
"""

from __future__ import annotations

from wordnet_splits.base.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
