"""Lets a source that is pickled with every job keep its handles and indexes in the worker."""

from __future__ import annotations

import uuid
from collections import OrderedDict
from pathlib import Path
from typing import Any

from wordnet_splits.sources.base import Order, Source

_KEPT = 4  # sources a worker remembers
_REVIVED: OrderedDict[str, Source] = OrderedDict()


class OneCopyPerProcess(Source):
    """A source of which all pickles of one object become one object in the process that unpickles them.

    A CIFAR batch takes a second to load and an LMDB file may be opened once a process only; a worker that
    is sent the source with each chunk of ids must find what it opened for the last one.
    """

    def __init__(self, root: Path | None, layout: str, *, order: Order = "published") -> None:
        super().__init__(root, layout, order=order)
        self._token = uuid.uuid4().hex  # tells opened sources apart, is part of no result

    def __reduce__(self) -> tuple[Any, ...]:
        return _revive, (type(self), self._token, self.__getstate__())


def _revive(cls: type[OneCopyPerProcess], token: str, state: dict[str, Any]) -> Source:
    if token not in _REVIVED:
        source = cls.__new__(cls)
        source.__dict__.update(state)
        _REVIVED[token] = source
        if len(_REVIVED) > _KEPT:
            _REVIVED.popitem(last=False)
    _REVIVED.move_to_end(token)
    return _REVIVED[token]
