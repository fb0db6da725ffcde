"""Images: photographs with faces that ship in packages, the user's files, and composed frames."""

from __future__ import annotations

import importlib.util
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
from PIL import Image
from pydantic import AfterValidator

from perfport.workload import UnavailableError, UsageError, damaged, name_or_path, opened, read_npy

#: Photographs by name: package that ships it, and path inside.
PHOTOGRAPHS = {
    "astronaut": ("skimage", "data/astronaut.png"),
    "grace_hopper": ("matplotlib", "mpl-data/sample_data/grace_hopper.jpg"),
}
BACKGROUNDS = ("coffee.png", "rocket.jpg", "chelsea.png")  # of scikit-image
FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")  # not EPS and its like, which run programs
#: Pixels of an image file at most: a few bytes can state any size. The integral images of more exceed most devices.
PIXELS = 1 << 27
MODES = ("1", "L", "LA", "P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr")
FACES = 100  # lfw_subset.npy holds as many faces, then as many images without one
FACE = 25  # pixels, width and height


@dataclass(frozen=True)
class Frames:
    """Grey images of one size.

    Attributes
    ----------
    pixels : uint8, shape (frames, height, width)
    faces : list of int64 arrays, shape (faces, 4)
        Per frame: boxes (x, y, width, height) of the faces that were pasted.
    """

    pixels: np.ndarray
    faces: list[np.ndarray]


def _packaged(package: str, path: str) -> Path:
    spec = importlib.util.find_spec(package)
    for place in spec.submodule_search_locations or () if spec else ():
        if (Path(place) / path).exists():
            return Path(place) / path
    distribution = {"skimage": "scikit-image"}.get(package, package)
    raise UnavailableError(f"source: {Path(path).name} ships in {distribution}, which is not installed")


def grey(image: np.ndarray) -> np.ndarray:
    """Return an image as grey values.

    Parameters
    ----------
    image : uint8, shape (height, width), (height, width, 3) or (height, width, 4)
        Grey, RGB or RGBA; transparency is ignored.

    Returns
    -------
    uint8, shape (height, width)
        OpenCV's weights of red, green and blue in 14-bit fixed point.

    Raises
    ------
    UsageError
        If it is empty, not 8-bit, or of another shape.
    """
    if image.dtype != np.uint8:
        raise UsageError(f"image: expected 8-bit pixels, got {image.dtype}")
    if image.ndim == 3 and image.shape[2] in (3, 4):
        red, green, blue = np.moveaxis(image[:, :, :3].astype(np.int32), 2, 0)
        image = ((red * 4899 + green * 9617 + blue * 1868 + (1 << 13)) >> 14).astype(np.uint8)
    if image.ndim != 2:
        raise UsageError(f"image: expected shape (height, width), or with 3 or 4 channels, got {image.shape}")
    if not image.size:
        raise UsageError(f"image: it is empty, {image.shape[1]} x {image.shape[0]}")
    return np.ascontiguousarray(image)


def read(path: Path) -> np.ndarray:
    """Read an image file as uint8, shape (height, width, 3), or (height, width) where it is grey.

    Raises
    ------
    UsageError
        If it is not an image of one of `FORMATS`, not one of 8 bits per channel, or has more than `PIXELS`.
    """
    with (
        opened(path) as file,
        damaged(f"{path}: not a readable image of the formats {', '.join(FORMATS)}"),
        warnings.catch_warnings(action="ignore"),  # of size (`PIXELS` is the limit) and of damaged remarks in the file
        Image.open(file, formats=FORMATS) as image,
    ):
        if image.mode not in MODES:
            raise UsageError(f"{path}: expected 8 bits per channel, got the image mode {image.mode!r}")
        if image.width * image.height > PIXELS:
            raise UsageError(f"{path}: expected at most {PIXELS} pixels, got {image.width} x {image.height}")
        return np.asarray(image.convert("L" if image.mode in ("1", "L") else "RGB"))


def picture(source: str) -> np.ndarray:
    """Return an image as it is stored, uint8, by one of the names of `PHOTOGRAPHS` or by path."""
    if source in PHOTOGRAPHS:
        return read(_packaged(*PHOTOGRAPHS[source]))
    if not Path(source).exists():
        known = ", ".join([*MADE, *PHOTOGRAPHS])
        raise UsageError(f"source: {source!r} is neither one of {known}, nor a file")
    return read(Path(source))


def photograph(source: str) -> np.ndarray:
    """Return an image in grey, uint8, shape (height, width); ``source`` as for `picture`."""
    return grey(picture(source))


def crops() -> np.ndarray:
    """Return small photographs of faces, uint8, shape (`FACES`, `FACE`, `FACE`), from scikit-image's LFW subset."""
    stored = read_npy(_packaged("skimage", "data/lfw_subset.npy"))[:FACES]
    return np.rint(np.clip(stored, 0, 1) * 255).astype(np.uint8)


def composite(width: int, height: int, frames: int, seed: int) -> Frames:
    """Compose frames: a background from photographs, with faces pasted at several scales in places drawn by seed.

    About one face is tried for each 128 x 128 pixels, 2 to 8 times as large as in the data set as far as they fit, none
    over another. Frames of less than 3 faces' width get one of the size that fits.
    """
    faces = crops()
    backgrounds = [grey(read(_packaged("skimage", f"data/{name}"))) for name in BACKGROUNDS]
    rng = np.random.default_rng(seed)
    pixels = np.empty((frames, height, width), np.uint8)
    boxes = []
    for frame in pixels:
        background = backgrounds[rng.integers(len(backgrounds))]
        tiled = np.pad(
            background,
            [(0, max(0, side - have)) for side, have in zip(frame.shape, background.shape, strict=True)],
            mode="symmetric",
        )
        top, left = (rng.integers(have - side + 1) for have, side in zip(tiled.shape, frame.shape, strict=True))
        frame[:] = tiled[top : top + height, left : left + width]
        boxes.append(_paste(frame, faces, rng))
    return Frames(pixels, boxes)


def equal(width: int, height: int, frames: int, seed: int) -> Frames:
    """Grey frames without any structure: no window's variance is large enough."""
    return Frames(np.full((frames, height, width), 128, np.uint8), [np.empty((0, 4), np.int64)] * frames)


def extreme(width: int, height: int, frames: int, seed: int) -> Frames:
    """Frames of black and white pixels at random: sums of squares, and differences of neighbours, are the largest."""
    pixels = np.random.default_rng(seed).choice(np.array([0, 255], np.uint8), (frames, height, width))
    return Frames(pixels, [np.empty((0, 4), np.int64)] * frames)


#: What makes frames by the name of a source.
MADE = {"composite": composite, "equal": equal, "extreme": extreme}
Source = Annotated[str, AfterValidator(name_or_path((*MADE, *PHOTOGRAPHS)))]


def _paste(frame: np.ndarray, faces: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    height, width = frame.shape
    largest = min(8, min(height, width) // FACE)
    placed: list[tuple[int, int, int, int]] = []
    for _ in range(max(1, height * width // 128**2)):
        if largest < 1:
            break
        side = FACE * int(rng.integers(min(2, largest), largest + 1))
        x, y = int(rng.integers(width - side + 1)), int(rng.integers(height - side + 1))
        if any(abs(2 * (x - px) + side - w) < side + w and abs(2 * (y - py) + side - w) < side + w
               for px, py, w, _ in placed):  # fmt: skip
            continue
        face = Image.fromarray(faces[rng.integers(len(faces))]).resize((side, side), Image.Resampling.BICUBIC)
        frame[y : y + side, x : x + side] = np.asarray(face)
        placed.append((x, y, side, side))
    return np.array(placed, np.int64).reshape(-1, 4)
