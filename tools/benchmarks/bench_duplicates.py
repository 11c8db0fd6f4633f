"""Close pairs of hashes of real images against all comparisons, faiss and a BK-tree; recall of the hash."""

from __future__ import annotations

import io
import resource
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from tools.benchmarks.rows import Row, real_data
from wordnet_splits.duplicates import close_hashes as ch
from wordnet_splits.duplicates import perceptual_hash as ph

WHOLE = 14_000_000, 2_000_000
SHARE = 50
THRESHOLD = 8
PEER_QUERIES = 200
PHOTOGRAPHS = 500


def run() -> list[Row]:
    """Return the rows of this file."""
    with real_data() as folder:
        paths = sorted((folder / "tiny-imagenet-200").rglob("*.JPEG"))[: 10 * PHOTOGRAPHS]
        if not paths:
            raise ImportError("Tiny ImageNet is not among the real datasets")
        grids = np.stack([ph.cells(Image.open(path)) for path in paths])
        a, b = (mixtures(grids, size // SHARE, seed) for seed, size in enumerate(WHOLE))
        return [*search_rows(a, b), *recall_rows(paths[::10])]


def mixtures(grids: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Return the hashes of random overlays of two images; the first is mirrored at random."""
    low = np.concatenate([ph.low_frequencies(grids[n : n + 2000]) for n in range(0, len(grids), 2000)])
    u, v = (np.array(numbers) for numbers in ph.frequencies())
    rng = np.random.default_rng(seed)
    hashes = []
    for top in range(0, count, 100_000):
        size = min(100_000, count - top)
        first, second = (low[rng.integers(0, len(low), size)] for _ in range(2))
        for axis in (u, v):
            first = first * np.where(rng.random((size, 1)) < 0.5, (-1.0) ** axis, 1)
        hashes.append(ph.hash_coefficients(first + second * rng.uniform(0, 1, (size, 1))))
    return np.concatenate(hashes)


def search_rows(a: np.ndarray, b: np.ndarray) -> list[Row]:
    """Compare a fiftieth of each side with every way."""
    ours, pairs = timed(lambda: pairs_of(ch.close_pairs(a, b, THRESHOLD, most=10**8)))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    name = f"hashes within {THRESHOLD} of 128 bits, {len(a):,} x {len(b):,}"
    strip = a[: len(a) // 50]
    everything, expected = timed(lambda: all_pairs(strip, b))
    if expected != {pair for pair in pairs if pair[0] < len(strip)}:
        raise AssertionError("the search differs from all comparisons")
    seconds = everything * len(a) / len(strip)
    rows = [
        Row(name, f"{ours:.1f} s, peak {peak:.2f} GiB", f"all comparisons {seconds:.0f} s (a 50th timed)",
            seconds / ours, "<= 36 s, <= 2 GiB", ours <= 1800 / SHARE and peak <= 2)
    ]  # fmt: skip
    for peer in (faiss_range, faiss_hash, bk_tree):
        try:
            seconds, label = peer(a, b)
        except ImportError as error:
            print(f"duplicates: {error}: pip install faiss-cpu pybktree", file=sys.stderr)
            continue
        rows.append(
            Row(
                f"{name}: {label}",
                f"{ours:.1f} s",
                f"{label} {seconds:,.0f} s",
                seconds / ours,
                "> 1",
                seconds > ours,
            )
        )
    return rows


def pairs_of(chunks: Iterator[ch.Pairs]) -> set[tuple[int, int]]:
    """Return the rows of all pairs."""
    return {
        pair for rows_a, rows_b, _ in chunks for pair in zip(rows_a.tolist(), rows_b.tolist(), strict=True)
    }


def all_pairs(a: np.ndarray, b: np.ndarray) -> set[tuple[int, int]]:
    """Return the close pairs by comparing all pairs of hashes."""
    left, right = (np.ascontiguousarray(side).view(np.uint64) for side in (a, b))
    pairs = set()
    for top in range(0, len(a), 64):
        for start in range(0, len(b), 4096):
            rows, columns = left[top : top + 64], right[start : start + 4096]
            distance = np.bitwise_count(rows[:, None, 0] ^ columns[None, :, 0])
            distance += np.bitwise_count(rows[:, None, 1] ^ columns[None, :, 1])
            pairs |= {(i + top, j + start) for i, j in np.argwhere(distance <= THRESHOLD).tolist()}
    return pairs


def timed(work: Callable[[], set[tuple[int, int]]]) -> tuple[float, set[tuple[int, int]]]:
    """Return the seconds of a call, and its result."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def faiss_range(a: np.ndarray, b: np.ndarray) -> tuple[float, str]:
    """Return the seconds of faiss's exhaustive index, from a part of the queries."""
    import faiss

    faiss.omp_set_num_threads(1)
    index = faiss.IndexBinaryFlat(ph.BITS)
    index.add(np.ascontiguousarray(a))
    queries = np.ascontiguousarray(b[:PEER_QUERIES])
    start = time.perf_counter()
    index.range_search(queries, THRESHOLD + 1)
    return (time.perf_counter() - start) * len(b) / len(queries), "faiss IndexBinaryFlat"


def faiss_hash(a: np.ndarray, b: np.ndarray) -> tuple[float, str]:
    """Return the seconds of faiss's multi-hash index with nine blocks, as exact as ours."""
    import faiss

    faiss.omp_set_num_threads(1)
    index = faiss.IndexBinaryMultiHash(ph.BITS, THRESHOLD + 1, ph.BITS // (THRESHOLD + 1))
    start = time.perf_counter()
    index.add(np.ascontiguousarray(a))
    built = time.perf_counter() - start
    queries = np.ascontiguousarray(b[: 10 * PEER_QUERIES])
    start = time.perf_counter()
    index.range_search(queries, THRESHOLD + 1)
    return built + (time.perf_counter() - start) * len(b) / len(queries), "faiss IndexBinaryMultiHash"


def bk_tree(a: np.ndarray, b: np.ndarray) -> tuple[float, str]:
    """Return the seconds of a BK-tree, which imagehash's readme recommends, over a twentieth of a side."""
    import pybktree

    items = [int.from_bytes(row.tobytes(), "big") for row in a[: len(a) // 20]]
    start = time.perf_counter()
    tree = pybktree.BKTree(pybktree.hamming_distance, items)
    built = time.perf_counter() - start
    start = time.perf_counter()
    for row in b[:10]:
        tree.find(int.from_bytes(row.tobytes(), "big"), THRESHOLD)
    per_query = (time.perf_counter() - start) / 10
    return (built + per_query * len(b)) * 20, "pybktree"


def recall_rows(paths: list[Path]) -> list[Row]:
    """Return the share of changed copies within 8 bits, and within 24, by kind of change."""
    images = [Image.open(path).convert("RGB") for path in paths]
    hashes = np.stack([np.frombuffer(ph.perceptual_hash(image), np.uint8) for image in images])
    rows = []
    for kind, change in CHANGES.items():
        changed = np.stack([np.frombuffer(ph.perceptual_hash(change(image)), np.uint8) for image in images])
        distance = np.unpackbits(hashes ^ changed, axis=1).sum(axis=1)
        within = [float((distance <= bits).mean()) for bits in (8, 24)]
        rows.append(
            Row(
                f"copies within 8 bits: {kind}",
                f"{within[0]:.1%} (24 bits: {within[1]:.1%})",
                "-",
                None,
                "-",
                True,
            )
        )
    return rows


def jpeg(image: Image.Image, quality: int) -> Image.Image:
    """Return the image after JPEG compression."""
    file = io.BytesIO()
    image.save(file, "JPEG", quality=quality)
    return Image.open(file)


def crop(image: Image.Image, pixels: int) -> Image.Image:
    """Return the image without some pixels on every side."""
    return image.crop((pixels, pixels, image.width - pixels, image.height - pixels))


def caption(image: Image.Image) -> Image.Image:
    """Return the image with a line of text in a white bar over its lowest eighth."""
    copy = image.copy()
    draw = ImageDraw.Draw(copy)
    top = image.height * 7 // 8
    draw.rectangle((0, top, image.width, image.height), fill="white")
    draw.text((2, top - 1), "copyright 2026", fill="black", font_size=max(image.height // 9, 6))
    return copy


def scaled(image: Image.Image, factor: float) -> Image.Image:
    """Return the image at another size."""
    return image.resize([max(round(side * factor), 1) for side in image.size], Image.Resampling.BICUBIC)


CHANGES: dict[str, Callable[[Image.Image], Image.Image]] = {
    "JPEG, quality 75": lambda image: jpeg(image, 75),
    "JPEG, quality 30": lambda image: jpeg(image, 30),
    "scaled to a half": lambda image: scaled(image, 0.5),
    "scaled to double": lambda image: scaled(image, 2),
    "brighter by a fifth": lambda image: image.point(lambda value: min(round(value * 1.2), 255)),
    "grey": lambda image: image.convert("L"),
    "1 of 64 pixels cropped on every side": lambda image: crop(image, 1),
    "2 of 64 pixels cropped on every side": lambda image: crop(image, 2),
    "3 of 64 pixels cropped on every side": lambda image: crop(image, 3),
    "caption over the lowest eighth": caption,
    "mirrored": lambda image: image.transpose(Image.Transpose.FLIP_LEFT_RIGHT),
}
