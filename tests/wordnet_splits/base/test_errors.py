"""The family of errors: what callers may catch them as."""

from __future__ import annotations

import difflib
import pickle
import subprocess
import sys

import pytest

from tests.raising import raises
from wordnet_splits.base.errors import DataError, SplitsError, UnknownNameError, unknown
from wordnet_splits.base.text_formats import parse_json
from wordnet_splits.metrics.registry import METRICS


def test_a_bad_argument_is_a_value_error_too() -> None:
    error = DataError("a batch of -1 images", where="here", hint="1 to 4096")
    assert isinstance(error, ValueError)
    assert isinstance(error, SplitsError)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.as_dict()) == (DataError, error.as_dict())
    with raises(ValueError, where="x.json"):
        parse_json("{", where="x.json")
    assert not issubclass(UnknownNameError, ValueError)


@pytest.mark.parametrize(
    ("name", "near"), [("oe", ("outlier-exposure", "mixoe")), ("OE", ("outlier-exposure", "mixoe")), ("", ())]
)
def test_names_with_these_initials_are_suggested_first(name: str, near: tuple[str, ...]) -> None:
    assert unknown("method", name, ["mixoe", "energy", "outlier-exposure"]).near == near


@pytest.mark.parametrize("name", ["fpr", "FPR95", "fpr_95"])
def test_names_that_hold_a_wrong_one_are_suggested(name: str) -> None:
    assert "fpr95_ood_positive" in unknown("metric", name, METRICS).near


@pytest.mark.parametrize(
    ("name", "meant"), [("tnr95", "fpr95_ood_positive"), ("eer", "detection_error"), ("zzz", "")]
)
def test_a_long_list_is_cut_where_names_are_least_alike(name: str, meant: str) -> None:
    error = unknown("metric", name, METRICS)
    assert error.near == ()
    assert meant in (error.hint or "")
    unlike = set(METRICS) - set(difflib.get_close_matches(name, METRICS, n=len(METRICS), cutoff=0.2))
    assert name == "zzz" or not any(f" {other}," in (error.hint or "") for other in unlike)


def test_arrays_do_not_import_pandas_which_works_all_the_same():
    pytest.importorskip("pandas", reason="of the extra docs")
    program = """
import sys
import numpy as np
import pyarrow as pa
from wordnet_splits.base.lazy import skip_pandas

hooks = list(sys.meta_path)
skip_pandas()
table = pa.table({"a": np.arange(3)})
assert "pandas" not in sys.modules and sys.meta_path == hooks
assert table.to_pandas().shape == (3, 1)
assert pa.array(sys.modules["pandas"].Series([1.0, None])).null_count == 1
"""
    subprocess.run([sys.executable, "-c", program], check=True)
