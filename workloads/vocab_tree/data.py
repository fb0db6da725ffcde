"""Descriptors: a seeded generator, SIFT of photographs that ship in packages, the user's files."""

from __future__ import annotations

import importlib.util
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from PIL import Image
from pydantic import AfterValidator

from perfport.workload import UnavailableError, UsageError, damaged, in_blocks, name_or_path, opened, read_npy

SOURCES = ("generated", "sift", "equal", "extreme")
Source = Annotated[str, AfterValidator(name_or_path(SOURCES))]
SIFT_DIMS = 128
BLOCK = 1 << 16  # points that one stream of random numbers makes

#: Photographs: package, and files inside it.
_SKIMAGE = (
    "astronaut.png", "brick.png", "camera.png", "chelsea.png", "coffee.png", "coins.png", "grass.png", "gravel.png",
    "ihc.png", "motorcycle_left.png", "page.png", "retina.jpg", "rocket.jpg", "text.png",
)  # fmt: skip
PHOTOGRAPHS = {
    "skimage": tuple(f"data/{name}" for name in _SKIMAGE),
    "sklearn": ("datasets/images/china.jpg", "datasets/images/flower.jpg"),
    "matplotlib": ("mpl-data/sample_data/grace_hopper.jpg",),
}

# The generator's shape: tests hold it to the statistics of real descriptors (README).
FAMILIES, TEMPLATES = 18, 3000
FAMILY_SHARE, TEMPLATE_SHARE = 0.445, 0.339  # of the variance before the threshold
DECAY = 10.1  # principal axes over which the deviation falls by the root of e, of 128
THRESHOLD = 1.05  # added before what is negative becomes 0
POWER = 2.73
NORM = 512.0


def points(source: str, count: int, dims: int, seed: int) -> np.ndarray:
    """Return descriptors, uint8, (count, dims).

    Parameters
    ----------
    source : str
        ``generated``, ``sift``, ``equal`` (all components 255), ``extreme`` (0 and 255 at random), or the path of an
        .fvecs, .bvecs or .npy file.
    count, dims : int
        A source with more points gives a sample drawn by ``seed``, in its order.

    Raises
    ------
    UsageError
        If the source has other dimensions or fewer points.
    """
    if source == "generated":
        return generate(count, dims, seed)
    if source == "equal":
        return np.full((count, dims), 255, np.uint8)
    if source == "extreme":
        return np.random.default_rng(seed).choice(np.array([0, 255], np.uint8), (count, dims))
    points = sift() if source == "sift" else read(Path(source))
    if points.shape[1] != dims:
        raise UsageError(f"dims: {source} has {points.shape[1]} dimensions, expected {dims}")
    if len(points) < count:
        raise UsageError(f"points: {source} has {len(points)} points, expected at least {count}")
    if len(points) == count:
        return points
    return points[np.sort(np.random.default_rng(seed).choice(len(points), count, replace=False))]


def generate(count: int, dims: int, seed: int) -> np.ndarray:
    """Return points with the statistics of SIFT descriptors, uint8, (count, dims).

    Normal values around templates, which lie around families, of variance that falls along random axes; what is below a
    threshold becomes 0, the rest is raised to a power; then SIFT's own ending: norm 1, components at most 0.2, norm
    again, times 512, rounded. Templates and axes are the same for every seed.
    """
    fixed = np.random.default_rng(105573834)
    axes = np.linalg.qr(fixed.standard_normal((dims, dims)))[0].astype(np.float32)
    deviation = np.exp(-np.arange(dims) / (2 * DECAY * dims / SIFT_DIMS))
    axes = (axes * (deviation / np.sqrt(np.mean(deviation**2))).astype(np.float32)).T
    families = np.sqrt(FAMILY_SHARE) * fixed.standard_normal((FAMILIES, dims))
    own = np.sqrt(TEMPLATE_SHARE) * fixed.standard_normal((TEMPLATES, dims))
    templates = (families[fixed.integers(0, FAMILIES, TEMPLATES)] + own).astype(np.float32) @ axes
    templates += np.float32(THRESHOLD)
    noise_axes = np.float32(np.sqrt(1 - FAMILY_SHARE - TEMPLATE_SHARE)) * axes
    weights = np.cumsum(fixed.exponential(1, TEMPLATES))
    out = np.empty((count, dims), np.uint8)

    def fill(part: slice) -> None:
        block = out[part]
        rng = np.random.default_rng([seed, part.start // BLOCK])
        chosen = np.searchsorted(weights, rng.random(len(block)) * weights[-1])
        noise = rng.standard_normal((len(block), dims), np.float32) @ noise_axes
        values = np.maximum(templates[chosen] + noise, 0) ** np.float32(POWER)
        values = np.minimum(_unit(values), np.float32(0.2))
        block[:] = np.minimum(np.rint(NORM * _unit(values)), 255)

    in_blocks(fill, count, BLOCK)
    return out


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / (np.linalg.norm(rows, axis=1, keepdims=True) + np.float32(1e-9))


@lru_cache(maxsize=1)
def photographs() -> tuple[np.ndarray, ...]:
    """Return the packaged photographs in grey, uint8.

    Raises
    ------
    UnavailableError
        Where no package has any.
    """
    images = []
    for package, names in PHOTOGRAPHS.items():
        spec = importlib.util.find_spec(package)
        for place in spec.submodule_search_locations or () if spec else ():
            paths = [Path(place) / name for name in names]
            images += [np.asarray(Image.open(path).convert("L")) for path in paths if path.exists()]
    if not images:
        raise UnavailableError(f"source: 'sift' finds no photographs of {', '.join(PHOTOGRAPHS)}")
    return tuple(images)


def describe(image: np.ndarray, limit: int = 0) -> np.ndarray:
    """Return the SIFT descriptors of a grey image by OpenCV, uint8, (count, 128); the ``limit`` strongest unless 0.

    Raises
    ------
    UnavailableError
        Without OpenCV.
    """
    try:
        import cv2
    except ImportError as error:
        raise UnavailableError(
            f"source: 'sift' needs OpenCV (pip install 'opencv-python-headless<5'): {error}"
        ) from None
    _, descriptors = cv2.SIFT_create(limit).detectAndCompute(image, None)  # type: ignore[attr-defined]
    return np.empty((0, SIFT_DIMS), np.uint8) if descriptors is None else descriptors.astype(np.uint8)


@lru_cache(maxsize=1)
def sift() -> np.ndarray:
    """Return SIFT descriptors of the packaged photographs, uint8, (count, 128)."""
    return np.concatenate([describe(image) for image in photographs()])


def read(path: Path) -> np.ndarray:
    """Read descriptors from a file, uint8, (count, dims).

    .bvecs and .fvecs: for each vector its dimension as a little-endian 32-bit integer, then its components as bytes or
    32-bit floats (whole numbers from 0 to 255). .npy: an array of shape (count, dims).

    Raises
    ------
    UsageError
        If the file is missing, truncated, of vectors of several dimensions, or does not hold bytes.
    """
    kinds: dict[str, np.dtype[Any]] = {".bvecs": np.dtype(np.uint8), ".fvecs": np.dtype("<f4")}
    if path.suffix not in (*kinds, ".npy"):
        raise UsageError(
            f"source: {str(path)!r} is neither {' nor '.join(map(repr, SOURCES))} nor a .fvecs, .bvecs or .npy file"
        )
    if path.suffix == ".npy":
        return _bytes(read_npy(path, f"source: {path}"), path)
    with opened(path) as file, damaged(f"source: {path}: cannot be read"):
        content = np.fromfile(file, np.uint8)
    if content.size < 4:
        raise UsageError(f"source: {path} is truncated: {content.size} bytes, expected at least one vector")
    dims = int(content[:4].view("<i4")[0])
    if not 0 < dims <= 1 << 16:
        raise UsageError(f"source: {path} begins with {dims}, expected the dimension of its first vector")
    kind = kinds[path.suffix]
    size = 4 + dims * kind.itemsize
    if content.size % size:
        raise UsageError(
            f"source: {path} is truncated or damaged: {content.size} bytes, expected a multiple of {size} "
            f"({dims} dimensions)"
        )
    rows = content.reshape(-1, size)
    stated = rows[:, :4].copy().view("<i4").ravel()
    if (stated != dims).any():
        first = int(np.flatnonzero(stated != dims)[0])
        raise UsageError(f"source: {path}: vector {first} has {stated[first]} dimensions, expected {dims}")
    return _bytes(np.ascontiguousarray(rows[:, 4:]).view(kind), path)


def _bytes(array: np.ndarray, path: Path) -> np.ndarray:
    if array.ndim != 2 or not array.size:
        raise UsageError(f"source: {path}: expected an array (points, dims), got shape {array.shape}")
    if array.dtype == np.uint8:
        return np.ascontiguousarray(array)
    if array.dtype == np.bool_:
        raise UsageError(f"source: {path}: expected whole numbers from 0 to 255, got {array.dtype}")
    with np.errstate(invalid="ignore"):
        bytes_ = array.astype(np.uint8)
    different = bytes_ != array
    if different.any():
        at = tuple(int(i) for i in np.argwhere(different)[0])
        raise UsageError(f"source: {path}: expected whole numbers from 0 to 255, got {array[at]} at {list(at)}")
    return bytes_
