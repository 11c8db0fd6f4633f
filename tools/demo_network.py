"""Train and store the network ``demo:digits``: ``python -m tools.demo_network``.

It gives the same bytes every time: full-batch gradient descent in float64, weights rounded to 11 bits.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from safetensors.numpy import save

import wordnet_splits as ws

FILE = Path(__file__).resolve().parents[1] / "wordnet_splits" / "data" / "demo" / "digits.safetensors"
STEPS, RATE, MOMENTUM, DECAY = 400, 0.3, 0.9, 1e-4
HIDDEN = 32
Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


def training_set() -> tuple[Array, Array]:
    """Return pixels (n, 192) in [0, 1] of the ID training images, and one-hot labels (n, 6)."""
    images = ws.load_manifest("digits").images("train", "digits-0-5")
    pixels = ws.open_source("digits").read(images["image_id"].to_pylist())
    planes = np.stack([np.asarray(image).transpose(2, 0, 1).ravel() for image in pixels]) / 255.0
    return planes, np.eye(6)[images["label"].to_numpy()]


def train(inputs: Array, targets: Array) -> dict[str, Array]:
    """Return the weights of a network with a single hidden layer, by the names of its torch modules."""
    draw = np.random.Generator(np.random.Philox(0)).normal
    count, width = inputs.shape
    weights = [draw(size=(width, HIDDEN)) * np.sqrt(2 / width), np.zeros(HIDDEN)]
    weights += [draw(size=(HIDDEN, targets.shape[1])) * np.sqrt(1 / HIDDEN), np.zeros(targets.shape[1])]
    speeds = [np.zeros_like(weight) for weight in weights]
    for _ in range(STEPS):
        first, first_bias, second, second_bias = weights
        hidden = np.maximum(inputs @ first + first_bias, 0)
        logits = hidden @ second + second_bias
        exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
        errors = (exponentials / exponentials.sum(axis=1, keepdims=True) - targets) / count
        below = errors @ second.T * (hidden > 0)
        gradients = [inputs.T @ below, below.sum(axis=0), hidden.T @ errors, errors.sum(axis=0)]
        for weight, speed, gradient in zip(weights, speeds, gradients, strict=True):
            speed[...] = MOMENTUM * speed - RATE * (gradient + DECAY * weight)
            weight += speed
    first, first_bias, second, second_bias = weights
    return {"1.weight": first.T, "1.bias": first_bias, "3.weight": second.T, "3.bias": second_bias}


def trained() -> bytes:
    """Return the file: the weights in half precision."""
    weights = train(*training_set())
    return save({name: np.ascontiguousarray(weight, np.float16) for name, weight in weights.items()})


if __name__ == "__main__":
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_bytes(trained())
    print(FILE, FILE.stat().st_size, "bytes")
