"""Cascades of boosted Haar features, read from OpenCV's XML format."""

from __future__ import annotations

import importlib.util
import math
from dataclasses import dataclass
from pathlib import Path
from xml.etree.ElementTree import Element

import numpy as np

from perfport.workload import UnavailableError, UsageError, name_or_path, read_file, xml

#: Sums of leaves are kept in units of 2^-FRACTION as 64-bit integers: exact, so that their order does not matter.
FRACTION = 40
EPSILON = np.float32(1e-5)  # OpenCV takes this from every stage threshold, in FP32
WINDOW_AREA = 32_768  # pixels: sums of 8-bit pixels then fit into 24 bits with their sign
FILE_LIMIT = 1 << 24  # bytes: six times the largest stock cascade
SYSTEM_FOLDER = Path("/usr/share/opencv4/haarcascades")


@dataclass(frozen=True)
class Cascade:
    """A cascade as flat arrays. Nodes of a tree are numbered from its root; a stump is a tree of one node.

    Attributes
    ----------
    name : str
    width, height : int
        Detection window, pixels.
    stage_first : int32, shape (stages + 1,)
        First tree of each stage.
    stage_threshold : int64, shape (stages,)
        A window fails the stage if its sum is less; units of 2^-`FRACTION`.
    tree_first : int32, shape (trees + 1,)
        First node of each tree. Its first leaf is ``tree_first[i] + i``: a tree has one leaf more than nodes.
    rectangles : int32, shape (nodes, 3, 4)
        x, y, width, height of up to three rectangles.
    weights : int32, shape (nodes, 3)
        Zero for a rectangle that is not there.
    tilted : bool, shape (nodes,)
        Rectangles turned by 45 degrees, x and y being their top corner.
    threshold : float32, shape (nodes,)
    children : int32, shape (nodes, 2)
        Where a value below the threshold leads, and any other: a node of the tree if positive, else minus a leaf.
    leaves : int64, shape (nodes + trees,)
        Units of 2^-`FRACTION`.
    """

    name: str
    width: int
    height: int
    stage_first: np.ndarray
    stage_threshold: np.ndarray
    tree_first: np.ndarray
    rectangles: np.ndarray
    weights: np.ndarray
    tilted: np.ndarray
    threshold: np.ndarray
    children: np.ndarray
    leaves: np.ndarray

    @property
    def stages(self) -> int:
        """Number of stages."""
        return len(self.stage_threshold)

    @property
    def nodes(self) -> int:
        """Number of nodes, each with one feature."""
        return len(self.threshold)

    @property
    def stumps(self) -> bool:
        """Whether every tree is a single node."""
        return len(self.tree_first) - 1 == self.nodes

    @property
    def normalisation(self) -> tuple[int, int, int, int]:
        """Rectangle (x, y, width, height) whose variance normalises a window."""
        return 1, 1, self.width - 2, self.height - 2

    @property
    def area(self) -> int:
        """Pixels of the rectangle of normalisation."""
        return (self.width - 2) * (self.height - 2)

    def offsets(self, pitch: int, tilted_plane: int, half: int = 0) -> np.ndarray:
        """Return the corners of every rectangle as offsets in an integral image, int32, shape (nodes, 3, 4).

        Their values are added with the signs + - - +. ``tilted_plane`` is the distance of the tilted integral image;
        where ``half`` is not 0, even columns lie side by side, and odd ones so many words behind them.
        """
        x, y, w, h = np.moveaxis(self.rectangles.astype(np.int64), 2, 0)

        def at(column: np.ndarray, row: np.ndarray) -> np.ndarray:
            return row * pitch + (column // 2 + column % 2 * half if half else column)

        upright = np.stack([at(x, y), at(x + w, y), at(x, y + h), at(x + w, y + h)], axis=2)
        turned = np.stack([at(x, y), at(x - h, y + h), at(x + w, y + w), at(x + w - h, y + w + h)], axis=2)
        corners = np.where(self.tilted[:, None, None], tilted_plane + turned, upright)
        return (corners * (self.weights != 0)[:, :, None]).astype(np.int32)


def folders() -> list[Path]:
    """Where stock cascades may lie: in the opencv-python package, in Debian's opencv-data."""
    package = importlib.util.find_spec("cv2")
    packaged = [Path(place) / "data" for place in package.submodule_search_locations or ()] if package else []
    return [folder for folder in (*packaged, SYSTEM_FOLDER) if folder.is_dir()]


def stock() -> dict[str, Path]:
    """Return where each stock cascade lies, by its name."""
    found = [path for folder in reversed(folders()) for path in sorted(folder.glob("haarcascade_*.xml"))]
    return {path.stem.removeprefix("haarcascade_"): path for path in found}


def known(name: str) -> str:
    """Return a stock name or a path. Raises `ValueError` for a name that none of this machine's cascades has."""
    names = stock()
    return name_or_path(names)(name) if names else name


def load(source: str) -> Cascade:
    """Load a cascade by the stock name (``frontalface_default``) or by path.

    Raises
    ------
    UsageError
        For an unknown name, or a file that is not such a cascade.
    UnavailableError
        For a stock name where no package that ships stock cascades is installed.
    """
    if source.endswith(".xml") or "/" in source:
        return read(Path(source))
    names = stock()
    if source in names:
        return read(names[source])
    if not names:
        raise UnavailableError(
            "cascade: stock cascades ship in opencv-python-headless 4, which is not installed (5 has none)"
        )
    raise UsageError(f"cascade: {source!r} is neither the path of an .xml file nor one of {', '.join(sorted(names))}")


def read(path: Path) -> Cascade:
    """Read a cascade file.

    Raises
    ------
    UsageError
        Naming the file and what is wrong with it.
    """
    return parse(read_file(path, FILE_LIMIT), str(path))


def parse(text: bytes, name: str) -> Cascade:
    """Parse the text of a cascade file; ``name`` stands in error messages. Raises `UsageError`."""
    return _Parser(name).cascade(xml(text, name))


class _Parser:
    """Checks every number on its way into a `Cascade`; each complaint names the file and the element."""

    def __init__(self, name: str) -> None:
        self.name = name

    def fail(self, where: str, what: str) -> UsageError:
        return UsageError(f"{self.name}: {where}: {what}")

    def child(self, parent: Element, tag: str, where: str) -> Element:
        child = parent.find(tag)
        if child is None:
            raise self.fail(where, f"element <{tag}> is missing")
        return child

    def numbers(self, element: Element, where: str, count: int | None = None) -> list[float]:
        text = element.text or ""
        try:
            values = [float(word) for word in text.split()]
        except ValueError:
            raise self.fail(where, f"expected numbers, got {text.strip()[:40]!r}") from None
        if count is not None and len(values) != count:
            raise self.fail(where, f"expected {count} numbers, got {len(values)}")
        if not all(math.isfinite(value) and abs(value) < 2**31 for value in values):
            raise self.fail(where, f"expected finite numbers below 2^31, got {text.strip()[:40]!r}")
        return values

    def integers(self, values: list[float], where: str) -> list[int]:
        if any(value != int(value) for value in values):
            raise self.fail(where, f"expected integers, got {values[:5]}")
        return [int(value) for value in values]

    def integer(self, parent: Element, tag: str, where: str) -> int:
        inner = f"{where}.{tag}"
        return self.integers(self.numbers(self.child(parent, tag, where), inner, 1), inner)[0]

    def cascade(self, root: Element) -> Cascade:
        top = root.find("cascade")
        if top is None:
            if any(child.get("type_id") == "opencv-haar-classifier" for child in root):
                raise self.fail("cascade", "the format before OpenCV 2 (opencv-haar-classifier) is not supported")
            raise self.fail("cascade", "element <cascade> is missing: not a cascade in OpenCV's format")
        for tag, expected in (("stageType", "BOOST"), ("featureType", "HAAR")):
            given = (self.child(top, tag, "cascade").text or "").strip()
            if given != expected:
                raise self.fail(f"cascade.{tag}", f"only {expected} is supported, got {given!r}")
        width, height = self.integer(top, "width", "cascade"), self.integer(top, "height", "cascade")
        if min(width, height) < 4 or width * height > WINDOW_AREA:
            expected = f"expected sides of at least 4 and at most {WINDOW_AREA} pixels"
            raise self.fail("cascade.width, cascade.height", f"{expected}, got {width} x {height}")
        features = [
            self.feature(element, f"features[{i}]", width, height)
            for i, element in enumerate(self.child(top, "features", "cascade"))
        ]
        stages = list(self.child(top, "stages", "cascade"))
        if not stages:
            raise self.fail("stages", "there are none")
        return self.assembled(stages, features, width, height)

    def feature(self, element: Element, where: str, width: int, height: int) -> tuple[np.ndarray, np.ndarray, bool]:
        rectangles, weights = np.zeros((3, 4), np.int32), np.zeros(3, np.int32)
        given = list(self.child(element, "rects", where))
        if not 1 <= len(given) <= 3:
            raise self.fail(f"{where}.rects", f"expected 1 to 3 rectangles, got {len(given)}")
        flag = element.find("tilted")
        tilted = flag is not None and self.numbers(flag, f"{where}.tilted", 1)[0] != 0
        for i, rectangle in enumerate(given):
            inner = f"{where}.rects[{i}]"
            values = self.integers(self.numbers(rectangle, inner, 5), inner)
            x, y, w, h, weight = values
            left, right, bottom = (x - h, x + w, y + w + h) if tilted else (x, x + w, y + h)
            if min(w, h) < 1 or left < 0 or y < 0 or right > width or bottom > height:
                kind = "tilted rectangle" if tilted else "rectangle"
                raise self.fail(inner, f"{kind} {values[:4]} is not inside the window of {width} x {height}")
            if not 1 <= abs(weight) <= 64:
                raise self.fail(inner, f"expected a weight of 1 to 64 in size, got {weight}")
            rectangles[i], weights[i] = (x, y, w, h), weight
        return rectangles, weights, tilted

    def assembled(
        self,
        stages: list[Element],
        features: list[tuple[np.ndarray, np.ndarray, bool]],
        width: int,
        height: int,
    ) -> Cascade:
        stage_first, tree_first = [0], [0]
        thresholds: list[int] = []
        nodes: list[tuple[int, float]] = []  # feature, threshold
        children: list[tuple[int, int]] = []
        leaves: list[int] = []
        for s, stage in enumerate(stages):
            where = f"stages[{s}]"
            inner = f"{where}.stageThreshold"
            threshold = self.numbers(self.child(stage, "stageThreshold", where), inner, 1)[0]
            thresholds.append(_fixed(np.float32(threshold) - EPSILON))
            trees = list(self.child(stage, "weakClassifiers", where))
            if not trees:
                raise self.fail(f"{where}.weakClassifiers", "there are none")
            largest = abs(threshold)
            for t, tree in enumerate(trees):
                inner = f"{where}.weakClassifiers[{t}]"
                words = self.numbers(self.child(tree, "internalNodes", inner), f"{inner}.internalNodes")
                values = self.numbers(self.child(tree, "leafValues", inner), f"{inner}.leafValues")
                if not words or len(words) % 4 or len(values) != len(words) // 4 + 1:
                    got = f"got {len(words)} numbers and {len(values)} leaves"
                    raise self.fail(inner, f"expected 4 numbers for each node and one leaf more than nodes, {got}")
                count = len(words) // 4
                for n in range(count):
                    left, right, feature = self.integers(words[4 * n : 4 * n + 3], f"{inner}.internalNodes")
                    if not 0 <= feature < len(features):
                        raise self.fail(inner, f"feature {feature} of {len(features)}")
                    if not all(-count <= to <= 0 or n < to < count for to in (left, right)):
                        raise self.fail(inner, f"node {n} leads to {left} and {right}: expected later nodes or leaves")
                    nodes.append((feature, words[4 * n + 3]))
                    children.append((left, right))
                largest += max(map(abs, values))
                leaves += [_fixed(np.float32(value)) for value in values]
                tree_first.append(tree_first[-1] + count)
            if largest >= 2 ** (62 - FRACTION):
                raise self.fail(where, f"leaves and threshold of up to {largest:g} do not fit the sum")
            stage_first.append(stage_first[-1] + len(trees))
        chosen = [features[feature] for feature, _ in nodes]
        return Cascade(
            name=self.name, width=width, height=height,
            stage_first=np.array(stage_first, np.int32), stage_threshold=np.array(thresholds, np.int64),
            tree_first=np.array(tree_first, np.int32),
            rectangles=np.array([rectangles for rectangles, _, _ in chosen], np.int32),
            weights=np.array([weights for _, weights, _ in chosen], np.int32),
            tilted=np.array([tilted for _, _, tilted in chosen], bool),
            threshold=np.array([threshold for _, threshold in nodes], np.float32),
            children=np.array(children, np.int32), leaves=np.array(leaves, np.int64),
        )  # fmt: skip


def _fixed(value: np.float32) -> int:
    """A number in units of 2^-FRACTION; exact for floats of at least 2^-17 in size."""
    return round(float(value) * 2**FRACTION)
