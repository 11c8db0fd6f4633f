"""The family of errors: what callers may catch them as."""

from __future__ import annotations

import pickle

import pytest

from wordnet_splits.base.errors import DataError, SplitsError, UnknownNameError
from wordnet_splits.base.text_formats import parse_json


def test_a_bad_argument_is_a_value_error_too() -> None:
    error = DataError("a batch of -1 images", where="here", hint="1 to 4096")
    assert isinstance(error, ValueError)
    assert isinstance(error, SplitsError)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.as_dict()) == (DataError, error.as_dict())
    with pytest.raises(ValueError, match="is not JSON"):
        parse_json("{", where="x.json")
    assert not issubclass(UnknownNameError, ValueError)
