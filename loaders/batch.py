"""A batch that already is one tensor; torch's ``default_collate`` passes it through."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.utils.data._utils.collate import default_collate_fn_map


class BatchItem(tuple[Any, ...]):
    """(image, label) of a `Batch`: a tuple recognised by its type."""

    __slots__ = ()


class Batch(Sequence[BatchItem]):
    """Images and labels as two tensors; as a sequence, the (image, label) pairs.

    Parameters
    ----------
    images : (n, ...) tensor.
    labels : (n,) int64 tensor.
    """

    def __init__(self, images: torch.Tensor, labels: torch.Tensor) -> None:
        self.images = images
        self.labels = labels

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return Batch(self.images[index], self.labels[index])
        return BatchItem((self.images[index], int(self.labels[index])))

    def __iter__(self) -> Iterator[BatchItem]:
        return (BatchItem(pair) for pair in zip(self.images.unbind(0), self.labels.tolist(), strict=True))

    def __reduce__(self) -> tuple[Any, ...]:
        return list, ([tuple(item) for item in self],)


def collate_items(
    batch: Sequence[BatchItem], *, collate_fn_map: Mapping[Any, Any] | None = None
) -> list[Any]:
    """Return [images, labels]: those of a `Batch` as they are, any other sequence of items stacked."""
    if isinstance(batch, Batch):
        return [batch.images, batch.labels]
    images, labels = zip(*batch, strict=True)
    return [torch.stack(images), torch.tensor(labels)]


# the documented way to collate a custom type; nothing but this package has items of it
default_collate_fn_map[BatchItem] = collate_items
