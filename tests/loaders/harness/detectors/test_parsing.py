"""Registering detectors of one's own, and choosing them by text: lists, parameters, presets, modules."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loaders.harness.data.arrays import Array, Arrays
from loaders.harness.detectors import (
    DETECTORS,
    get_detector,
    get_preset,
    get_spec,
    list_detectors,
    parse_detectors,
    preset_names,
    register,
)
from loaders.harness.detectors.parsing import one_detector
from loaders.harness.evaluation.fitting import sweep_grid
from loaders.harness.evaluation.scoring import confidence, fit
from tests.loaders.harness.detectors.separable import head_of, images
from tests.raising import raises
from wordnet_splits.base.errors import DataError, SplitsError, UnknownNameError
from wordnet_splits.metrics import auroc

BUILT_IN = list_detectors()
TRAIN, KNOWN, UNKNOWN = images(1600, seed=1), images(300, seed=3), images(300, seed=4, unknown=True)
Z = np.asarray(KNOWN["logits"], dtype=np.float64)


@pytest.mark.parametrize("text", ["react,msp", "knn[k=5],msp", "preset:simple", "", ",", "msp,msp,mls"])
def test_a_text_that_names_several_detectors_or_none_is_not_one(text: str) -> None:
    with pytest.raises(SplitsError) as caught:
        one_detector(text)
    assert caught.value.where == "--detectors"


def test_one_detector_is_a_name_or_an_object() -> None:
    assert one_detector("knn[k=5]") == get_detector("knn", k=5)
    assert one_detector("msp,msp").label == "msp"
    assert one_detector(get_spec("msp").implementation).label == "msp"
    for other in (None, 3, b"msp", ["msp"]):
        with pytest.raises(SplitsError):
            one_detector(other)


@pytest.mark.usefixtures("own_registry")
@pytest.mark.parametrize("name", ["react,msp", "a b", "a:b", "a[b]", "", "a\n"])
def test_a_name_that_no_list_could_hold_is_not_registered(name: str) -> None:
    for options in ({"name": name}, {"name": "mine", "aliases": [name]}):
        if options == {"name": ""}:
            continue  # the name of the function
        with pytest.raises(SplitsError):
            register(**options)(lambda data: np.zeros(data.n))  # type: ignore[arg-type] # for any options


@pytest.fixture
def own_registry(isolated: Any) -> None:
    isolated(DETECTORS)


@pytest.mark.usefixtures("own_registry")
def test_a_users_class_with_head_and_fit() -> None:
    @register(needs=("features", "head"), fit_on="train", sweep={"power": (1, 2)})
    @dataclass(frozen=True)
    class Residual:
        """Distance from the mean along the head."""

        power: int = 1

        def fit(self, data: Arrays, head: Any) -> tuple[Array, Array]:
            return np.asarray(data["features"]).mean(axis=0), head.weight

        def score(self, state: tuple[Array, Array], data: Arrays) -> Array:
            mean, weight = state
            return np.asarray(
                np.abs((np.asarray(data["features"]) - mean) @ weight.T).max(axis=1) ** self.power
            )

    chosen = get_detector("residual", power=2)
    fitted = fit(chosen, TRAIN, head_of())
    assert auroc(confidence(fitted, KNOWN), confidence(fitted, UNKNOWN)) > 0.9
    assert [one.params for one in sweep_grid(get_detector("residual"))] == [{"power": 1}, {"power": 2}]
    with raises(DataError, where="'residual[power=2]'"):
        fit(chosen, TRAIN, None)


@pytest.mark.usefixtures("own_registry")
def test_a_users_function() -> None:
    @register("scaled", needs=("logits",))
    def scaled_maximum(data: Arrays, *, factor: float = 2.0) -> Array:
        """Return the maximum logit, scaled."""
        return np.asarray(data["logits"]).max(axis=1) * factor

    assert get_spec("scaled").summary == "Return the maximum logit, scaled."
    np.testing.assert_allclose(
        confidence(fit(get_detector("scaled", factor=3)), KNOWN), Z.max(axis=1) * 3, rtol=1e-6
    )


@pytest.mark.usefixtures("own_registry")
def test_what_is_no_detector_is_refused() -> None:
    with pytest.raises(SplitsError):
        register("mcp")(lambda data: data)
    with raises(SplitsError, where="Plain"):
        register()(type("Plain", (), {}))
    with raises(UnknownNameError, where="other", naming="kk", near="k"):
        register("other", sweep={"kk": (1,)})(type(get_detector("knn").detector))
    with raises(SplitsError, where="third", naming="needed"):
        register("third")(lambda data, needed: data)


def test_detectors_are_parsed_from_text() -> None:
    chosen = parse_detectors("MSP, knn[k=100],odin[T=10, eps=0.002],msp")
    assert [c.label for c in chosen] == ["msp", "knn[k=100]", "odin[T=10,eps=0.002]"]
    assert [dict(c.params) for c in chosen] == [{}, {"k": 100}, {"T": 10.0, "eps": 0.002}]
    assert chosen[2].needs == ("odin[T=10,eps=0.002]/logits",)


@pytest.mark.parametrize(
    ("text", "error", "where"),
    [
        ("mspp", UnknownNameError, None),
        ("knn[k]", DataError, "--detectors"),
        ("knn[kk=3]", UnknownNameError, "knn"),
        ("knn[k=many]", DataError, "knn: k"),
        ("knn[k=0]", DataError, "knn: k"),
        ("nnguide[k=0]", DataError, "nnguide: k"),
        ("vim[dim=0]", DataError, "vim: dim"),
        ("gen[M=0]", DataError, "gen: M"),
        ("ash[variant=x]", DataError, "ash: variant"),
        ("openmax[distance=cosine]", DataError, "openmax: distance"),
        ("energy[T=-1]", DataError, "energy: T"),
        ("mahalanobis[on=labels]", DataError, "mahalanobis: on"),
        ("react[percentile=100]", DataError, "react: percentile"),
        ("vra[low=90,high=80]", SplitsError, None),
        ("openmax[tail=1]", DataError, "openmax: tail"),
        ("msp[T=2]", UnknownNameError, "msp"),
        ("knn]k[", DataError, "--detectors"),
        ("preset:openod", UnknownNameError, "--detectors"),
        ("no_such_module:thing", SplitsError, "--detectors"),
        ("json:thing", UnknownNameError, "--detectors json"),
        ("", SplitsError, "--detectors"),
    ],
)
def test_bad_detector_lists_are_refused(text: str, error: type[SplitsError], where: str | None) -> None:
    with pytest.raises(error) as caught:
        parse_detectors(text)
    assert caught.value.where == where


def test_detectors_of_a_users_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_detectors.py").write_text(
        "import numpy as np\n"
        "def top(data, *, T=1.0):\n"
        "    'Return the maximum logit over T.'\n"
        "    return np.asarray(data['logits']).max(axis=1) / T\n"
        "top.needs = ('logits',)\n"
        "def msp(data):\n"
        "    return top(data)\n"
    )
    (tmp_path / "broken_detectors.py").write_text("1 / 0\n")
    monkeypatch.chdir(tmp_path)
    (chosen,) = parse_detectors("my_detectors:top[T=2]")
    assert (chosen.label, chosen.needs) == ("top[T=2]", ("logits",))
    np.testing.assert_allclose(confidence(fit(chosen), KNOWN), Z.max(axis=1) / 2, rtol=1e-6)
    with raises(SplitsError, naming="msp"):
        parse_detectors("msp,my_detectors:msp")
    with raises(DataError, where="--detectors"):
        parse_detectors("broken_detectors:top")


def test_presets_hold_only_what_is_built_and_name_the_rest() -> None:
    for name in preset_names():
        assert get_preset(name).paper
        for spec in (
            *get_preset(name).detectors,
            *(s for specs in get_preset(name).only.values() for s in specs),
        ):
            (chosen,) = parse_detectors(spec)
            assert chosen.spec.name in BUILT_IN
        for spec in get_preset(name).absent:  # a row of the paper leaves this list when it is built
            with pytest.raises(UnknownNameError):
                parse_detectors(spec)


def test_the_preset_of_all_leaves_none_out() -> None:
    assert {one.spec.name for one in parse_detectors("preset:all")} == set(BUILT_IN)


def test_openood_defaults_are_those_of_its_table() -> None:
    chosen = {c.spec.name: dict(c.params) for c in parse_detectors("preset:openood")}
    assert chosen["knn"] == {"k": 50}
    assert chosen["odin"] == {"T": 1000.0, "eps": 0.0014}
    assert chosen["energy"] == {"T": 1.0}


def test_kim_selected_other_values_on_each_benchmark() -> None:
    by_benchmark = {
        name: next(c.params for c in parse_detectors("preset:kim", benchmark=name) if c.spec.name == "odin")
        for name in ("unknown-cifar", "unknown-imagenet")
    }
    assert by_benchmark["unknown-cifar"] == {"T": 10.0, "eps": 0.002}
    assert by_benchmark["unknown-imagenet"] == {"T": 10.0, "eps": 0.0}


@pytest.mark.parametrize(
    ("preset", "benchmark", "expected"),
    [
        ("kim", "unknown-cifar", (0.0005, 0.0)),
        ("kim-code", "unknown-cifar", (0.005, 0.5)),
        ("kim-code", "unknown-imagenet", (0.005, 0.0)),
    ],
)
def test_openmax_of_the_paper_and_of_its_code(
    preset: str, benchmark: str, expected: tuple[float, ...]
) -> None:
    (params,) = (
        c.params for c in parse_detectors(f"preset:{preset}", benchmark=benchmark) if c.spec.name == "openmax"
    )
    assert (params["alpha"], params["tail"], params["weight"], params["omega"]) == (1, 2, *expected)


def test_a_preset_sweeps_the_grid_of_its_paper_although_values_are_given() -> None:
    of_kim = {one.spec.name: one for one in parse_detectors("preset:kim", benchmark="unknown-cifar")}
    assert of_kim["react"].params["threshold"] == 7
    tried = [one.params["threshold"] for one in sweep_grid(of_kim["react"])]
    assert tried == list(range(1, 11))
    assert len(list(sweep_grid(of_kim["odin"]))) == 4 * 11
    assert {one.params["weight"] for one in sweep_grid(of_kim["openmax"])} == {0.0005}
    of_openood = {one.spec.name: one for one in parse_detectors("preset:openood")}
    assert not of_openood["openmax"].sweep
    assert not of_openood["energy"].sweep
    assert of_openood["knn"].sweep == get_spec("knn").sweep
    # a grid of a parameter or a detector that does not exist would never be tried
    for name in preset_names():
        for detector, grid in get_preset(name).sweep.items():
            assert set(grid) <= set(get_spec(detector).parameters)
            assert get_spec(detector).name == detector


def test_list_detectors_knows_wildcards_and_aliases() -> None:
    assert list_detectors("ms*") == ("msp", "msp_float32")
    assert list_detectors("mcp") == ("msp",)
    assert get_spec("MDS") is get_spec("mahalanobis")
