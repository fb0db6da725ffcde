"""Inputs: seeded random maps, responses of a filter bank to photographs, a layer's parameters."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from perfport.workload import UsageError, read_npz

from . import reference

Source = Literal["generated", "filter_bank", "equal", "wide"]
EXPONENTS = -149, 31  # of two, by which the values of ``wide`` are scaled: from denormal ones on


class LayerParameters(BaseModel):
    """``channels`` maps of ``height`` x ``width`` for each of ``batch`` images, in one of two layouts.

    ``source`` is ``generated``, ``filter_bank`` (photographs), ``equal`` or ``wide``, the last two to verify with;
    ``layer`` an .npz file with gamma and beta, in place of a random layer.
    """

    model_config = ConfigDict(extra="forbid")

    channels: int = Field(ge=1, le=16384)
    height: int = Field(ge=1, lt=2**31)
    width: int = Field(ge=1, lt=2**31)
    batch: int = Field(1, ge=1, lt=2**31)
    layout: Literal["nchw", "nhwc"] = "nchw"
    inverse: bool = False
    source: Source = "generated"
    layer: str | None = None
    beta_min: float = Field(reference.BETA_MIN, gt=0, allow_inf_nan=False)


def maps(source: Source, shape: tuple[int, int, int, int], seed: int) -> np.ndarray:
    """Return feature maps, float32, of shape (batch, channels, height, width).

    Parameters
    ----------
    source : str
        ``generated``: independent normal values. ``filter_bank``: see `filter_bank`. ``equal``: ones. ``wide``: normal
        values scaled by random powers of two.

    Raises
    ------
    UsageError
        For maps larger than the photographs.
    """
    if source == "generated":
        return np.random.default_rng(seed).standard_normal(shape, np.float32)
    if source == "filter_bank":
        return filter_bank(*shape, seed)
    if source == "equal":
        return np.ones(shape, np.float32)
    rng = np.random.default_rng(seed)
    return np.ldexp(rng.standard_normal(shape, np.float32), rng.integers(*EXPONENTS, shape, np.int32))


def cosines(size: int) -> np.ndarray:
    """Orthonormal DCT-II basis of ``size`` points, one per row."""
    grid = np.arange(size)
    basis = np.cos(np.pi * (2 * grid[None, :] + 1) * grid[:, None] / (2 * size)) * np.sqrt(2 / size)
    basis[0] /= np.sqrt(2)
    return basis


def filter_bank(batch: int, channels: int, height: int, width: int, seed: int) -> np.ndarray:
    """Return responses of a two-dimensional DCT bank at every pixel of random crops of photographs.

    The photographs are the two that scikit-learn ships, in grey. The bank has the least square size that holds
    ``channels`` filters, taken by rising frequency. Responses are divided by their standard deviation over all
    channels, so that low frequencies stay the strong ones.
    """
    from sklearn.datasets import load_sample_images

    photographs = [image.mean(axis=2) / 255.0 for image in load_sample_images().images]
    size = int(np.ceil(np.sqrt(channels)))
    rows, columns = photographs[0].shape
    if height + size - 1 > rows or width + size - 1 > columns:
        raise UsageError(
            f"source: 'filter_bank' with {channels} channels ({size} x {size} filters) gives maps of at most "
            f"{rows - size + 1} x {columns - size + 1}; height x width is {height} x {width}"
        )
    basis = cosines(size)
    order = sorted(np.ndindex(size, size), key=lambda pair: (sum(pair), pair))[:channels]
    rng = np.random.default_rng(seed)
    out = np.empty((batch, channels, height, width), np.float32)
    for responses in out:
        image = photographs[rng.integers(len(photographs))]
        y = rng.integers(rows - height - size + 2)
        x = rng.integers(columns - width - size + 2)
        crop = image[y : y + height + size - 1, x : x + width + size - 1]
        along = np.lib.stride_tricks.sliding_window_view(crop, size, axis=0) @ basis.T  # (height, columns, v)
        both = np.lib.stride_tricks.sliding_window_view(along, size, axis=1) @ basis.T  # (height, width, v, h)
        for channel, (v, h) in enumerate(order):
            responses[channel] = both[:, :, v, h]
    return out / out.std()


def layer(channels: int, seed: int, beta_min: float) -> tuple[np.ndarray, np.ndarray]:
    """Return gamma (channels, channels) and beta (channels,) of a random layer, float32, by way of raw parameters.

    Gamma is a tenth of the identity, as training starts with, and a random part that is not symmetric; z is near 2
    for inputs of unit variance.
    """
    rng = np.random.default_rng(seed)
    random = rng.uniform(0, 2 / channels, (channels, channels))
    raw_gamma = np.sqrt(0.1 * np.eye(channels) + random + reference.PEDESTAL)
    raw_beta = np.sqrt(rng.uniform(0.5, 1.5, channels) + reference.PEDESTAL)
    gamma, beta = reference.effective(raw_gamma, 0.0), reference.effective(raw_beta, beta_min)
    return gamma.astype(np.float32), beta.astype(np.float32)


def load_layer(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return gamma and beta of an .npz file as float32; `reference.check_arguments` judges them.

    Raises
    ------
    UsageError
        If the file is not there, is no .npz file, or lacks one of the two arrays.
    """
    arrays = read_npz(path, ["beta", "gamma"], where=f"layer: {path}")
    with np.errstate(over="ignore"):  # beyond FP32: infinite, which is refused
        return arrays["gamma"].astype(np.float32), arrays["beta"].astype(np.float32)


def uniform(index: np.ndarray, seed: int) -> np.ndarray:
    """Return values in [-1, 1) at flat indices, exactly as ``generate.cl`` makes them on a device.

    The 64-bit finaliser of SplitMix (G. L. Steele, D. Lea, C. H. Flood, OOPSLA 2014) of index and seed; its upper 24
    bits. No state: any part can be made alone.

    Parameters
    ----------
    index : array of uint64
    seed : int

    Returns
    -------
    array of float32, shape of ``index``
    """
    with np.errstate(over="ignore"):
        x = (index + np.uint64(seed & 0xFFFFFFFF)) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x = x ^ (x >> np.uint64(31))
    return (x >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-23) - np.float32(1)
