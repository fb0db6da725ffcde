"""A vocabulary tree and its file."""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from perfport.workload import UsageError

FORMAT = "perfport vocabulary tree 1"
ABSENT = np.uint32(0xFFFFFFFF)  # no such child


@dataclass(frozen=True)
class Level:
    """The nodes of one level that were split, by ascending path.

    Attributes
    ----------
    paths : uint64, (nodes,)
        The classes on the way from the root, as digits to the base of the number of clusters.
    centres : uint16, (nodes, clusters, dims)
        Fixed point, 8 bits of fraction.
    counts : uint32, (nodes, clusters)
        Points of each child.
    """

    paths: np.ndarray
    centres: np.ndarray
    counts: np.ndarray


class Tree:
    """Levels of split nodes, and to which word each point of the build went.

    Parameters
    ----------
    clusters, dims : int
    levels : sequence of Level

    Attributes
    ----------
    words : int
        Number of leaves: children of a split node that are not split themselves, those without points included.
    points : uint32, (points,)
        Number of each point's leaf; whoever builds the tree sets it.
    children, leaves : list of uint32 arrays, (nodes, clusters), per level
        Each child's place among the split nodes of the next level, and its number where it is a leaf; else `ABSENT`.
    """

    def __init__(self, clusters: int, dims: int, levels: Sequence[Level]) -> None:
        self.clusters, self.dims, self.levels = clusters, dims, list(levels)
        self.points = np.empty(0, np.uint32)
        self._number()

    def _number(self) -> None:
        self.children: list[np.ndarray] = []
        self.leaves: list[np.ndarray] = []
        self.words = 0
        for number, level in enumerate(self.levels):
            own = (level.paths[:, None] * np.uint64(self.clusters) + np.arange(self.clusters, dtype=np.uint64)).ravel()
            below = self.levels[number + 1].paths if number + 1 < len(self.levels) else np.empty(0, np.uint64)
            children = np.full(own.size, ABSENT)
            children[np.searchsorted(own, below)] = np.arange(below.size, dtype=np.uint32)
            leaves = np.full(own.size, ABSENT)
            is_leaf = children == ABSENT
            leaves[is_leaf] = self.words + np.arange(is_leaf.sum(), dtype=np.uint32)
            self.words += int(is_leaf.sum())
            self.children.append(children.reshape(-1, self.clusters))
            self.leaves.append(leaves.reshape(-1, self.clusters))

    def words_at(self, paths: np.ndarray, depths: np.ndarray) -> np.ndarray:
        """Return the words, uint32, of leaves by path, uint64, and depth."""
        words = np.empty(paths.size, np.uint32)
        for number, level in enumerate(self.levels):
            here = np.flatnonzero(depths == number + 1)
            parent, child = np.divmod(paths[here], np.uint64(self.clusters))
            words[here] = self.leaves[number][np.searchsorted(level.paths, parent), child.astype(np.int64)]
        return words

    @property
    def nodes(self) -> int:
        """Split nodes of all levels."""
        return sum(len(level.paths) for level in self.levels)

    def same_as(self, other: Tree) -> bool:
        """Whether both have the same nodes, centres and points in leaves."""
        return (
            (self.clusters, self.dims, len(self.levels)) == (other.clusters, other.dims, len(other.levels))
            and np.array_equal(self.points, other.points)
            and all(
                np.array_equal(getattr(mine, name), getattr(its, name))
                for mine, its in zip(self.levels, other.levels, strict=True)
                for name in ("paths", "centres", "counts")
            )
        )

    def leaf_paths(self) -> tuple[np.ndarray, np.ndarray]:
        """Return path, uint64, and depth, uint8, of each word."""
        paths, depths = np.empty(self.words, np.uint64), np.empty(self.words, np.uint8)
        for number, (level, leaves) in enumerate(zip(self.levels, self.leaves, strict=True)):
            own = level.paths[:, None] * np.uint64(self.clusters) + np.arange(self.clusters, dtype=np.uint64)
            paths[leaves[leaves != ABSENT]] = own[leaves != ABSENT]
            depths[leaves[leaves != ABSENT]] = number + 1
        return paths, depths

    def save(self, path: Path) -> None:
        """Write the tree; an existing file is replaced in one step, and a failure leaves nothing behind.

        Raises
        ------
        UsageError
            If the folder does not exist or is not writable.
        """
        arrays = {"header": np.array(json.dumps(self._header())), **self.arrays()}
        try:
            handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        except OSError as error:
            raise UsageError(f"{path}: cannot write a tree here ({error.strerror})") from None
        try:
            with os.fdopen(handle, "wb") as file:
                np.savez(file, **arrays)  # type: ignore[arg-type]
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise

    def arrays(self) -> dict[str, np.ndarray]:
        """Return everything that makes the tree, by the names of its file."""
        arrays = {"points": self.points}
        for number, level in enumerate(self.levels):
            arrays |= {f"{name}_{number}": getattr(level, name) for name in ("paths", "centres", "counts")}
        return arrays

    def _header(self) -> dict[str, object]:
        return {
            "format": FORMAT, "clusters": self.clusters, "dims": self.dims, "levels": len(self.levels),
            "fraction_bits": 8,
        }  # fmt: skip


def load(path: Path) -> Tree:
    """Read a tree that `Tree.save` wrote.

    Raises
    ------
    UsageError
        If the file is missing, truncated, of another format, or its arrays do not fit together.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            header = json.loads(str(file["header"]))
            if header.get("format") != FORMAT:
                raise UsageError(f"{path}: expected the format {FORMAT!r}, got {header.get('format')!r}")
            arrays = {name: file[name] for name in file.files if name != "header"}
            return from_arrays(header["clusters"], header["dims"], header["levels"], arrays, str(path))
    except (OSError, KeyError, ValueError, EOFError, AttributeError, zipfile.BadZipFile) as error:
        raise UsageError(f"{path}: not a vocabulary tree, or a damaged one ({error})") from None


def from_arrays(clusters: int, dims: int, levels: int, arrays: Mapping[str, np.ndarray], where: str = "tree") -> Tree:
    """Return the tree that `Tree.arrays` took apart.

    Raises
    ------
    UsageError
        If an array is missing, or of another type or shape than the others ask for.
    """
    made = []
    for number in range(levels):
        names = [f"{name}_{number}" for name in ("paths", "centres", "counts")]
        if missing := [name for name in names if name not in arrays]:
            raise UsageError(f"{where}: has no {', '.join(missing)}")
        own = [arrays[name] for name in names]
        nodes = len(own[0])
        expected = (np.uint64, (nodes,)), (np.uint16, (nodes, clusters, dims)), (np.uint32, (nodes, clusters))
        for name, array, (dtype, shape) in zip(names, own, expected, strict=True):
            if array.dtype != dtype or array.shape != shape:
                raise UsageError(
                    f"{where}: {name}: expected {np.dtype(dtype)} {shape}, got {array.dtype} {array.shape}"
                )
        made.append(Level(*own))
    tree = Tree(clusters, dims, made)
    points = arrays.get("points", np.empty(0))
    if points.dtype != np.uint32 or points.ndim != 1 or (points.size and points.max() >= tree.words):
        raise UsageError(f"{where}: points: expected uint32 numbers of {tree.words} words, got {points.dtype}")
    tree.points = points
    return tree
