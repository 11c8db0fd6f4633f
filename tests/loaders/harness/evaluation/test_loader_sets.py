"""A user's loaders and datasets: images left out, repeated or scaled otherwise, and objects not of torch."""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import suppress
from itertools import count, product
from typing import Any

import numpy as np
import pytest
from PIL import Image

from wordnet_splits.base.errors import DataError

torch = pytest.importorskip("torch", reason="needs torch")
from torch import nn  # noqa: E402 - after importorskip
from torch.utils.data import (  # noqa: E402 - after importorskip
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
)

from loaders import evaluate  # noqa: E402 - after importorskip
from loaders.harness.data.array_checks import SIGMOIDS  # noqa: E402 - after importorskip
from loaders.harness.evaluation.loader_sets import PixelRange, class_names  # noqa: E402 - after importorskip
from loaders.harness.results.results import Results  # noqa: E402 - after importorskip

K, N = 6, 60


def rand(seed: int, n: int = N) -> Any:
    return torch.rand(n, 3, 8, 8, generator=torch.Generator().manual_seed(seed))


X, OUT, Y = rand(0), rand(1, 40), torch.arange(N) % K
KNOWN = TensorDataset(X, Y)


def found(known: Any = KNOWN, near: Any = OUT, **options: Any) -> Results:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Flatten(), nn.Linear(192, 16), nn.ReLU(), nn.Linear(16, K))
    sets = {"id": known, "near": near, **options.pop("more", {})}
    return evaluate(network, sets=sets, detectors="msp", device="cpu", **options)


def notes(results: Results) -> list[str]:
    """Return the notes but for that on the accuracy of an untrained network."""
    return [note for note in results.about.notes if "accuracy" not in note]


PLAIN = found()


class Iterable(IterableDataset):  # type: ignore[misc]  # torch may be absent
    """Images without a share for each worker."""

    def __iter__(self) -> Any:
        return iter([(x, int(y)) for x, y in zip(X, Y, strict=True)])


class Counted(Iterable):
    """The same with a length."""

    def __init__(self, length: int = N) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length


class Endless(IterableDataset):  # type: ignore[misc]  # torch may be absent
    """Batches without end, and Ctrl-C at the third."""

    def __iter__(self) -> Any:
        for number in count():
            if number == 3:
                signal.raise_signal(signal.SIGINT)
            yield X, Y


@pytest.mark.parametrize("loader", [Endless(), DataLoader(Endless(), batch_size=None)], ids=["set", "loader"])
def test_a_loader_without_end_is_interrupted(loader: Any) -> None:
    with pytest.raises(KeyboardInterrupt):
        found(loader)


def kept(items: list[Any]) -> Any:
    """Drop some items, as a collate function drops images that do not open."""
    return default_collate([item for item in items if item[1] != 3])


REFUSED = {
    "the last batch": lambda: DataLoader(KNOWN, 16, drop_last=True),
    "items that collate drops": lambda: DataLoader(KNOWN, 16, collate_fn=kept),
    "a batch sampler's last batch": lambda: DataLoader(
        KNOWN, batch_sampler=BatchSampler(range(N), 7, drop_last=True)
    ),
    "a worker each": lambda: DataLoader(Iterable(), 8, num_workers=2),
    "a worker each, of a known length": lambda: DataLoader(Counted(), 8, num_workers=2),
    "fewer than its length": lambda: Counted(N + 1),
}


@pytest.mark.filterwarnings("ignore:Length of IterableDataset")
@pytest.mark.parametrize("loader", REFUSED.values(), ids=REFUSED)
def test_a_loader_that_drops_or_repeats_images_is_refused(loader: Callable[[], Any]) -> None:
    with pytest.raises(DataError) as caught:
        found(loader())
    assert caught.value.where == "id"


TAKEN = {
    "shuffled": lambda: DataLoader(KNOWN, 16, shuffle=True),
    "joined": lambda: ConcatDataset([Subset(KNOWN, range(30)), Subset(KNOWN, range(30, N))]),
    "sampled by batches": lambda: DataLoader(KNOWN, batch_sampler=BatchSampler(range(N), 7, drop_last=False)),
    "batches of anyone's": lambda: DataLoader(KNOWN, batch_sampler=[range(30), range(30, N)]),
    "iterable": lambda: DataLoader(Iterable(), 8, num_workers=1),
    "iterable itself": Iterable,
    "of its length": lambda: DataLoader(Counted(), 8),
    "whole batches": lambda: DataLoader([(X[:30], Y[:30]), (X[30:], Y[30:])], batch_size=None),
    "arrays": lambda: (X.numpy(), Y.numpy()),
}


@pytest.mark.parametrize("loader", TAKEN.values(), ids=TAKEN)
def test_a_loader_that_gives_each_image_once_is_taken_without_a_note(loader: Callable[[], Any]) -> None:
    results = found(loader(), workers=2 if loader is Iterable else 0)
    assert not notes(results)
    assert results.values("auroc", group="near")["value"].tolist() == pytest.approx(
        PLAIN.values("auroc", group="near")["value"].tolist()
    )
    assert (
        results.values("accuracy", group="(pooled)")["value"].tolist()
        == PLAIN.values("accuracy", group="(pooled)")["value"].tolist()
    )


def test_a_sampler_may_choose_images() -> None:
    results = found(DataLoader(KNOWN, 16, sampler=SubsetRandomSampler(range(50))))
    assert (results.about.composition.n_id, notes(results)) == (50, [])


def test_repeated_images_are_noted() -> None:
    sampler = WeightedRandomSampler(torch.ones(N), N, generator=torch.Generator().manual_seed(0))
    (note,) = notes(found(DataLoader(KNOWN, 16, sampler=sampler)))
    assert "id" in note.split()
    assert not notes(found(TensorDataset(torch.cat([rand(2, 300), rand(2, 3)]), torch.arange(303) % K)))


class Items:
    """Map-style, and not torch's."""

    def __init__(self, items: Any) -> None:
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> Any:
        return self.items[index]


MAP_STYLE: dict[str, Callable[[], Any]] = {
    "pairs": lambda: Items([(x, int(y)) for x, y in zip(X, Y, strict=True)]),
    "mappings": lambda: Items(
        [{"file": "a", "pixel_values": x, "label": int(y)} for x, y in zip(X, Y, strict=True)]
    ),
    "more than two": lambda: Items([(x, int(y), "name") for x, y in zip(X, Y, strict=True)]),
    "batches": lambda: Items([(X[:30], Y[:30]), (X[30:], Y[30:])]),
    "loader of mappings": lambda: DataLoader(
        Items([{"image": x, "labels": int(y)} for x, y in zip(X, Y, strict=True)]), 16
    ),
}


@pytest.mark.parametrize("made", MAP_STYLE.values(), ids=MAP_STYLE)
def test_any_object_with_a_length_and_items_is_a_dataset(made: Callable[[], Any]) -> None:
    results = found(made())
    assert not notes(results)
    assert results.values("auroc", group="near")["value"].tolist() == pytest.approx(
        PLAIN.values("auroc", group="near")["value"].tolist()
    )


def test_a_transform_is_of_the_images_of_such_an_object() -> None:
    pixels = (X.permute(0, 2, 3, 1).numpy() * 255).astype(np.uint8)
    pictures = [Image.fromarray(image) for image in pixels]

    def transform(image: Image.Image) -> Any:
        return torch.from_numpy(np.array(image)).permute(2, 0, 1).float() / 255

    mappings = Items([{"image": image, "label": i % K} for i, image in enumerate(pictures)])
    expected = found([(torch.stack([transform(image) for image in pictures]), Y)])
    results = found(mappings, Items([(transform_back(image),) for image in OUT]), transform=transform)
    assert (
        results.values("accuracy", group="(pooled)")["value"].tolist()
        == expected.values("accuracy", group="(pooled)")["value"].tolist()
    )
    for bad in (mappings, Items([{"picture": x} for x in X]), Items([None]), Items({})):
        with pytest.raises(DataError) as caught:
            found(bad)
        assert caught.value.where == "id"


def transform_back(image: Any) -> Image.Image:
    return Image.fromarray((image.permute(1, 2, 0).numpy() * 255).astype(np.uint8))


def test_a_dataset_of_hugging_face_is_one() -> None:
    hf = pytest.importorskip("datasets", reason="needs datasets")
    features = hf.Features({"image": hf.Image(), "label": hf.ClassLabel(names=list("abcdef"))})
    columns = {"image": [transform_back(image) for image in X], "label": Y.tolist()}
    held = hf.Dataset.from_dict(columns, features=features)

    def tensors(batch: Any) -> Any:
        images = [torch.from_numpy(np.array(image)).permute(2, 0, 1) / 255 for image in batch["image"]]
        return {"pixel_values": images, "label": batch["label"]}

    made = held.with_transform(tensors)
    results = [found(way) for way in (made, DataLoader(made, 16), Subset(made, range(N)))]
    assert len({result.values("auroc", group="near")["value"].tolist()[0] for result in results}) == 1
    assert class_names(made) == class_names(Subset(made, range(3))) == tuple("abcdef")
    with pytest.raises(DataError):  # pictures without a transform
        found(held)


def test_labels_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(DataError) as caught:
        found((X, ["ant"] * N))
    assert caught.value.where == "id"


def test_an_id_and_an_ood_set_of_the_same_images_are_refused() -> None:
    for known, near in ((KNOWN, X), (KNOWN, X[:20]), (KNOWN, torch.cat([X[:25], OUT[:15]]))):
        with pytest.raises(DataError) as caught:
            found(known, near)
        assert caught.value.where == "sets"
    with pytest.raises(DataError):
        found(more={"id/train": TensorDataset(OUT, torch.arange(len(OUT)) % K)})
    (note,) = notes(found(KNOWN, torch.cat([X[:5], OUT])))
    assert "id and near" in note


NORMALISED = [(x - 0.5) / 0.25 for x in (X, OUT)]


@pytest.mark.parametrize(
    ("known", "near"),
    [
        ((X * 255).round(), OUT),
        (X, OUT * 255),
        (NORMALISED[0], (OUT * 255).round()),
        (torch.cat([X[:30], X[30:] * 255]), OUT),
        (X, torch.cat([OUT[:30], OUT[30:] * 255])),
    ],
)
def test_images_of_0_to_255_beside_scaled_ones_are_refused(known: Any, near: Any) -> None:
    with pytest.raises(DataError) as caught:
        found(TensorDataset(known, Y), near)
    assert caught.value.where == "sets"


@pytest.mark.parametrize(
    ("known", "near"),
    [
        *((NORMALISED[0], OUT), (X, NORMALISED[1]), (X, torch.randn(40, 3, 8, 8))),
        *((X, OUT * 16), (X / 0.25, OUT), (X, 2 * OUT)),
    ],
)
def test_normalised_images_beside_others_are_noted(known: Any, near: Any) -> None:
    (note,) = notes(found(TensorDataset(known, Y), near))
    assert "id" in note
    assert "near" in note


ONE_SCALE = {
    "0 to 1": (X, OUT),
    "0 to 255": (X * 255, OUT * 255),
    "normalised": tuple(NORMALISED),
    "darker": (X, OUT / 20),
    "normalised and white": (NORMALISED[0], NORMALISED[1].abs() + 0.1),
    "black beside 0 to 255": (X * 255, torch.zeros(1, 3, 8, 8)),
    "grey beside normalised": (NORMALISED[0], torch.full((1, 3, 8, 8), 0.5)),
    "black and white": (X, (OUT > 0.5).float()),
    "divided alone": (X / 0.25, OUT / 0.25),
    "noise beside normalised": (NORMALISED[0], torch.randn(40, 3, 8, 8)),
}


@pytest.mark.parametrize(("known", "near"), ONE_SCALE.values(), ids=ONE_SCALE)
def test_images_of_one_scale_have_no_note(known: Any, near: Any) -> None:
    assert not notes(found(TensorDataset(known, Y), near))


SHAPES = [(2, 3, 8, 8), (0, 3, 8, 8), (2, 0, 8, 8), (2, 192), (2, 3), (1, 1, 1, 1)]


@pytest.mark.parametrize(
    ("shape", "dtype"), list(product(SHAPES, ["float16", "bfloat16", "float32", "float64"]))
)
def test_ranges_are_of_any_array(shape: tuple[int, ...], dtype: str) -> None:
    of_set = PixelRange()
    for value in (0.0, 300.0, -1.0, float("inf"), float("nan")):
        of_set.add(torch.full(shape, value, dtype=getattr(torch, dtype)))
    assert isinstance(of_set.is_unscaled, bool)
    assert str(of_set)


CHOICES: dict[str, tuple[Callable[[Any], Any], ...]] = {
    "pixels": (
        lambda x: x,
        lambda x: x * 255,
        lambda x: (x - 0.5) / 0.2,
        lambda x: x.half(),
        torch.zeros_like,
    ),
    "kind": (
        lambda pair: pair,
        lambda pair: TensorDataset(*pair),
        lambda pair: DataLoader(TensorDataset(*pair), 7),
        lambda pair: Items([{"image": x, "label": int(y)} for x, y in zip(*pair, strict=True)]),
        lambda pair: Items([*zip(*pair, strict=True)]),
        lambda pair: [pair],
        lambda pair: {"image": pair[0], "label": pair[1]},
        lambda pair: (pair[0].float().numpy(), pair[1].tolist()),
    ),
    "labels": (
        lambda y: y,
        lambda y: y + 1,
        lambda y: -y,
        lambda y: y.float(),
        lambda y: y[:, None],
        lambda y: y[0],
    ),
}


@pytest.mark.sampled("fuzz", one_in=40)
@pytest.mark.parametrize("choice", [*product(*(range(len(ways)) for ways in CHOICES.values()))], ids=str)
def test_any_set_works_or_is_refused_in_a_line(choice: tuple[int, ...]) -> None:
    pixels, kind, labels = (ways[n] for ways, n in zip(CHOICES.values(), choice, strict=True))
    try:
        given = kind((pixels(X), labels(Y)))
    except (TypeError, AssertionError, IndexError):  # there is no such set
        return
    with suppress(DataError):
        assert found(given).detectors == ("msp",)


@pytest.mark.parametrize(("factor", "refused"), [(1.0, True), (100.0, True), (None, False)])
def test_a_network_that_gives_percentages_is_refused(factor: float | None, refused: bool) -> None:
    torch.manual_seed(0)
    linear = nn.Sequential(nn.Flatten(), nn.Linear(192, K))

    def scaled(x: Any) -> Any:
        z = linear(x).detach()
        return torch.sigmoid(z) if factor is None else factor * z.softmax(1)

    sets = {"id": KNOWN, "near": OUT}
    if refused:
        with pytest.raises(DataError):
            evaluate(scaled, sets=sets, detectors="msp", device="cpu")
    else:  # a sigmoid is noted
        assert notes(evaluate(scaled, sets=sets, detectors="mls", device="cpu"))
        of_digits = evaluate(scaled, "digits", "mls", device="cpu", mean=0, std=1).about.notes
        assert len([note for note in of_digits if "accuracy" not in note]) == 1  # of all sets once


@pytest.mark.parametrize("end", [torch.sigmoid, torch.tanh, nn.Softmax(1)])
def test_outputs_are_checked_on_whole_sets(end: Any) -> None:
    """Of ten times a sigmoid, or 100 times a softmax, the first eight images may say nothing."""
    torch.manual_seed(0)
    weights = 8 * torch.randn(192, K)

    def bounded(x: Any) -> Any:
        z = (x - 0.5).flatten(1) @ weights
        z[x[:, 0, 0, 0] == 0] *= 1000
        return 100 * end(z)

    images = X.clone()
    images[:8, 0, 0, 0] = 0
    sets = {"id": TensorDataset(images, Y), "near": OUT}
    if isinstance(end, nn.Softmax):
        with pytest.raises(DataError) as caught:
            evaluate(bounded, sets=sets, detectors="mls", device="cpu")
        assert caught.value.where == "bounded"
    else:
        found_notes = notes(evaluate(bounded, sets=sets, detectors="mls", device="cpu"))
        assert any(note.endswith(SIGMOIDS) for note in found_notes)


class Late(Dataset):  # type: ignore[misc]  # torch may be absent
    """Images of which the later half is augmented."""

    def __len__(self) -> int:
        return N

    def __getitem__(self, number: int) -> Any:
        return X[number] * (torch.rand(()) if number >= N / 2 else 1), int(Y[number])


def test_random_images_are_found_beyond_the_first() -> None:
    for known in (Late(), DataLoader(Late(), 16)):
        (note,) = notes(found(known))
        assert "id" in note
    assert any(note.startswith("near: ") for note in notes(found(near=Late())))


def test_a_dataset_whose_length_fails_is_refused() -> None:
    class Unsized(Late):
        def __len__(self) -> int:
            raise NotImplementedError

    with pytest.raises(DataError) as caught:
        found(Unsized())
    assert caught.value.where == "id"
