"""What makes figures other than they seem is refused, or said below the table, in files and in the report."""

from __future__ import annotations

import numpy as np
import pytest

from tests.raising import raises
from wordnet_splits.base.errors import DataError

torch = pytest.importorskip("torch", reason="needs torch")
from torch import nn  # noqa: E402 - after importorskip
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402 - after importorskip

from loaders import evaluate, evaluate_arrays  # noqa: E402 - after importorskip
from loaders.harness.models.reproducibility import NOT_COMPARED, RANDOM  # noqa: E402 - after importorskip
from loaders.harness.results.results import Results  # noqa: E402 - after importorskip
from tests.loaders.harness.long_tables import long_predictions  # noqa: E402 - after importorskip

K, N = 4, 80
CENTRES = 6 * np.eye(K, dtype=np.float32)


def labels(n: int = N) -> np.ndarray:
    return np.arange(n) % K


def logits(seed: int, given: np.ndarray | None = None, n: int = N) -> np.ndarray:
    """Logits around the centre of each label, or, without labels, around none."""
    noise = np.random.default_rng(seed).normal(size=(n, K)).astype(np.float32)
    return noise if given is None else noise + CENTRES[given]


def arrays(**more):
    sets = {
        "id": {"logits": logits(0, labels()), "labels": labels()},
        "near": {"logits": logits(1)},
        "id/train": {"logits": logits(2, labels()), "labels": labels()},
    }
    return {**sets, **more}


def pictures(seed: int, given: np.ndarray | None = None, side: int = 8, n: int = N) -> TensorDataset:
    """Pictures whose mean colour is that of their label, or, without labels, of none."""
    random = torch.Generator().manual_seed(seed)
    images = torch.rand(n, 3, side, side, generator=random) / 4
    if given is None:
        return TensorDataset(images)
    colours = torch.tensor([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]])[torch.from_numpy(given)]
    return TensorDataset(images + colours[:, :, None, None], torch.from_numpy(given))


class Colours(nn.Module):
    """A network that tells those colours apart: mean colour, a layer, the head."""

    def __init__(self, *between: nn.Module) -> None:
        super().__init__()
        self.between = nn.Sequential(*between)
        self.head = nn.Linear(3, K)
        with torch.no_grad():
            self.head.weight.copy_(6 * torch.tensor([[1.0, -1, -1], [-1, 1, -1], [-1, -1, 1], [1, 1, 1]]))
            self.head.bias.copy_(torch.tensor([0.0, 0, 0, -6]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:  # type: ignore[name-defined]
        return self.head(self.between(x).mean((2, 3)))


def sets(**more):
    return {"id": pictures(0, labels()), "near": pictures(1), **more}


def notes(found: Results) -> str:
    return "\n".join(found.about.notes)


def test_an_honest_evaluation_has_no_note():
    assert evaluate_arrays(arrays(), "msp,energy").about.notes == ()
    given = {**sets(), "far": pictures(2), "id/train": pictures(3, labels()), "csid": pictures(4, labels())}
    assert evaluate(Colours(nn.BatchNorm2d(3)), sets=given, detectors="msp,energy,knn[k=5]").about.notes == ()


def test_a_note_is_below_the_table_in_the_files_and_in_the_report(tmp_path):
    from loaders.harness import report

    same = arrays()["id"]
    found = evaluate_arrays(arrays(**{"id/train": same}), "msp")
    (note,) = found.about.notes
    assert note == f"id and id/train have {N} rows in common"
    found.write(tmp_path / "results")
    assert Results.read(tmp_path / "results").about.notes == (note,)
    page = report(found, tmp_path / "report.html").read_text(encoding="utf-8")
    for shown in (found.table(width=10_000), found._repr_html_(), page):
        assert note in shown


def test_one_image_with_two_labels_is_noted():
    twice = labels()
    twice[[4, 9]] += 1
    given = arrays(**{"id/train": {"logits": arrays()["id"]["logits"], "labels": twice % K}})
    expected = "2 rows of id and id/train occur with more than one label"
    assert expected in notes(evaluate_arrays(given, "msp"))
    known = pictures(0, labels())
    doubled = TensorDataset(
        torch.cat([known.tensors[0], known.tensors[0][:1]]), torch.cat([known.tensors[1], torch.tensor([2])])
    )
    expected = "1 image of id occurs with more than one label, as the model gets them"
    others = {"id/train": pictures(3, labels()), "csid:x": pictures(4, labels())}  # do not hold it
    assert expected in notes(evaluate(Colours(), sets=sets(id=doubled, **others), detectors="msp"))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "other"])
@pytest.mark.parametrize("columns", [4, 16])
def test_rows_of_id_in_another_precision_are_noted(columns, dtype):
    values, others = torch.randn(2, N, columns, generator=torch.Generator().manual_seed(0))
    near = others if dtype == "other" else values.to(getattr(torch, dtype)).float()
    given = {"id": values, "near": near, "far": others + 1}
    found = evaluate_arrays({name: {"logits": of_set.numpy()} for name, of_set in given.items()}, "mls")
    assert len(found.about.notes) == int(columns == 16 and dtype != "other")


def test_one_row_in_common_is_one():
    given = arrays()
    given["near"]["logits"][7] = given["id"]["logits"][3]
    assert evaluate_arrays(given, "msp").about.notes == ("id and near have 1 row in common",)


@pytest.mark.parametrize("kind", ["rolled", "untrained", "constant", "right"])
def test_a_head_that_is_no_better_than_guessing_says_so_beside_auroc(kind):
    random = np.random.default_rng(5)
    given = {
        "rolled": logits(0, (labels() + 1) % K),
        "untrained": random.normal(size=(N, K)),
        "constant": random.normal(size=(N, K)) + np.array([9, 0, 0, 0]),
        "right": logits(0, labels()),
    }[kind]
    found = evaluate_arrays(arrays(id={"logits": given, "labels": labels()}), "msp")
    (accuracy,) = found.values("accuracy", group="(pooled)")["value"].tolist()
    said = "no better than" if accuracy <= 0.25 else "not told apart from"
    expected = f"arrays: accuracy on ID is {accuracy:.1%}, {said} guessing (25.0%)"
    assert (expected in found.table(width=10_000)) == (kind != "right")


@pytest.mark.parametrize(
    ("predicted", "noted"),
    [([1, 0, 2, 3], 1), ([0, 2, 3, 1], 1), ([0, 1, 2, 3], 0), ([1, 1, 2, 3], 0), ([0, 1, 3, 3], 0)],
)
def test_classes_that_are_predicted_as_each_other_get_a_note(predicted: list[int], noted: int):
    known = np.repeat(np.arange(4), 30)
    made = np.random.default_rng(3).normal(size=(120, 4)) / 9
    made += 9 * np.eye(4)[np.where(np.arange(120) % 10 < 8, np.array(predicted)[known], known)]
    near = {"logits": np.random.default_rng(4).normal(size=(12, 4))}
    found = evaluate_arrays({"id": {"logits": made, "labels": known}, "near": near}, "msp")
    assert len(found.about.notes) == noted


@pytest.mark.parametrize(
    ("right", "said"),
    [(9, ""), (8, "not told apart from guessing (50.0%) on 12 images"), (6, "no better than")],
)
def test_few_images_are_no_proof_of_guessing(right: int, said: str):
    known = np.arange(12) % 2
    predicted = np.where(np.arange(12) < right, known, 1 - known)
    made = np.random.default_rng(3).normal(size=(12, 2)) / 9 + 4 * np.eye(2)[predicted]
    near = {"logits": np.random.default_rng(4).normal(size=(12, 2))}
    found = notes(evaluate_arrays({"id": {"logits": made, "labels": known}, "near": near}, "msp"))
    assert ("guessing" in found) == bool(said)
    assert said in found


def test_one_class_alone_is_not_compared_with_guessing():
    ones = np.ones(N, np.int64)
    given = arrays(id={"logits": logits(0, ones), "labels": ones})
    assert evaluate_arrays(given, "msp", classes=K).about.notes == ()


def log_softmax(values: np.ndarray) -> np.ndarray:
    return values - np.log(np.exp(values).sum(axis=1, keepdims=True))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_log_probabilities_in_the_place_of_logits_are_noted(dtype):
    given = arrays(near={"logits": log_softmax(logits(1)).astype(dtype)})
    note, *_ = evaluate_arrays(given, "energy").about.notes  # energy, 0 but for rounding, has ties beside
    assert note.startswith("near: the logits are log-probabilities")
    given = {k: {**v, "logits": log_softmax(v["logits"]).astype(dtype)} for k, v in given.items()}
    (note,) = evaluate_arrays(given, "msp").about.notes
    assert note.startswith("the logits are log-probabilities")


def test_a_model_that_ends_in_a_log_softmax_is_noted():
    def network(x: torch.Tensor) -> torch.Tensor:  # type: ignore[name-defined]
        return Colours()(x).log_softmax(1)

    found = evaluate(network, sets=sets(), detectors="energy", model_id="log-softmax")
    assert found.about.notes[0].startswith("log-softmax: the logits are log-probabilities")


@pytest.mark.parametrize("batch_size", [1, 2, 3, 4, 20, 128])
def test_batch_statistics_are_noted(batch_size):
    norm = nn.BatchNorm2d(3, track_running_stats=False)
    known = pictures(0, np.random.default_rng(0).permutation(labels()))
    found = evaluate(Colours(norm), sets=sets(id=known), detectors="mls", batch_size=batch_size)
    assert "Colours: its logits for an image depend on the other images of the batch" in notes(found)
    assert notes(found).count("of the batch") == 1  # of the model, not of every set


class Dropping(nn.Module):
    def forward(self, x):
        return nn.functional.dropout(x, training=True)


def test_a_random_model_is_said_not_to_be_deterministic():
    given = sets(id=DataLoader(pictures(0, labels()), batch_size=20))
    assert any(RANDOM in note for note in evaluate(Colours(Dropping()), sets=given).about.notes)


@pytest.mark.parametrize("batch_size", [1, 2, 4])
def test_a_model_of_one_batch_size_is_evaluated_and_said_not_to_be_compared(batch_size):
    class Fixed(Colours):
        def forward(self, x: torch.Tensor) -> torch.Tensor:  # type: ignore[name-defined]
            return super().forward(x.view(batch_size, 3, 8, 8))

    found = evaluate(Fixed(), sets=sets(), detectors="msp", batch_size=batch_size)
    (note,) = found.about.notes
    assert note == f"Fixed: {NOT_COMPARED}"
    plain = evaluate(Colours(), sets=sets(), detectors="msp", batch_size=batch_size)
    assert plain.about.notes == ()
    assert found.scores.equals(plain.scores)


def test_on_a_benchmark_batch_statistics_are_noted_and_a_transform_to_bytes_is_refused(tmp_path):
    network = nn.Sequential(nn.BatchNorm2d(3, track_running_stats=False), nn.Flatten(), nn.Linear(192, 6))
    for batch_size in (128, 8):  # 8 are put through it again when they are read
        with_store = {"store": tmp_path / f"{batch_size}", "groups": ["uniform"], "batch_size": batch_size}
        for _ in range(2):  # computed, then read again
            assert "depend on the other images of the batch" in notes(
                evaluate(network, "digits", "msp", **with_store)
            )
    with raises(DataError, where="transform"):
        evaluate(
            nn.Sequential(nn.Flatten(), nn.Linear(192, 6)),
            "digits",
            "msp",
            transform=lambda image: torch.from_numpy(np.array(image)).permute(2, 0, 1),
        )


def test_classes_in_another_order_are_refused():
    def named(dataset: TensorDataset, *classes: str) -> TensorDataset:
        dataset.classes = list(classes)
        return dataset

    known = named(pictures(0, labels()), "ant", "bee", "cat", "dog")
    train = named(pictures(3, labels()), "ant", "cat", "bee", "dog")
    with raises(DataError, where="sets", naming=("cat", "2", "id", "id/train")):
        evaluate(Colours(), sets=sets(id=known, **{"id/train": train}), detectors="msp")
    with raises(DataError, where="sets", naming=("cat", "2", "id", "id/train")):
        evaluate(Colours(), sets=sets(id=known, **{"id/train": DataLoader(train)}), detectors="msp")
    respelt = named(pictures(0, labels()), "ant", "b\u00e9 e", "cat", "dog")  # one class in two spellings
    train = named(pictures(3, labels()), "ant", "cat", "be\u0301_e", "dog")
    with pytest.raises(DataError) as caught:
        evaluate(Colours(), sets=sets(id=respelt, **{"id/train": train}), detectors="msp")
    assert caught.value.where == "sets"
    near = named(pictures(1), "dog", "ant")  # not of the model's classes
    assert evaluate(Colours(), sets=sets(id=known, near=near), detectors="msp")


def test_classes_that_a_target_transform_renumbers_are_no_names_of_labels():
    def renumbered(dataset: TensorDataset, *classes: str) -> TensorDataset:
        dataset.classes, dataset.target_transform = list(classes), [0, 2, 3].__getitem__
        return dataset

    known = pictures(0, labels())
    known.classes = ["ant", "bee", "cat", "dog"]
    csid = renumbered(pictures(3, np.array([0, 2, 3])[np.arange(N) % 3]), "ant", "cat", "dog")
    for given in (csid, DataLoader(csid), torch.utils.data.Subset(csid, range(N))):
        found = evaluate(Colours(), sets=sets(id=known, csid=given), detectors="msp")
        named = long_predictions(found).to_pandas()
        assert set(named[named.group == "csid"].class_id) == {"0", "2", "3"}
        assert set(named[named.group == "id"].class_id) == set(known.classes)


def test_sets_of_different_sizes_are_noted():
    found = evaluate(Colours(), sets=sets(near=pictures(1, side=4)), detectors="msp")
    expected = "different sizes (3 x 8 x 8 in id; 3 x 4 x 4 in near)"
    assert expected in notes(found)


def test_autocast_around_evaluate_changes_no_figure_and_is_noted():
    plain = evaluate(Colours(), sets=sets(), detectors="energy")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        cast = evaluate(Colours(), sets=sets(), detectors="energy")
        assert torch.is_autocast_enabled("cpu")
    assert cast.scores.equals(plain.scores)
    assert "Colours: torch.autocast is switched off while it computes" in notes(cast)
    assert plain.about.notes == ()


def test_notes_of_two_models_name_each() -> None:
    torch = pytest.importorskip("torch", reason="needs torch")
    from loaders import evaluate

    def always(label: int) -> object:
        model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 6))
        with torch.no_grad():
            model[1].bias[label] += 100
        return model

    notes = evaluate({"first": always(0), "second": always(1)}, "digits", "energy").about.notes
    assert {note.partition(":")[0] for note in notes} == {"first (Sequential)", "second (Sequential)"}
