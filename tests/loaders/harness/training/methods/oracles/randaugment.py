"""Cross-entropy of augmented images."""

from .softmax import oracle as oracle
