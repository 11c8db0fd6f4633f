"""Cross-entropy of images and copies."""

from .softmax import oracle as oracle
