"""A vocabulary tree and its file."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field

from perfport.workload import REAL, TEXT, Model, UsageError, damaged, parse_json, read_npz, validate

from .fixed_point import CLUSTERS_LIMIT, DIMS_LIMIT, ONE

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


class _Header(Model):
    """What the file says of its tree."""

    format: str
    clusters: int = Field(strict=True, ge=2, le=CLUSTERS_LIMIT)
    dims: int = Field(strict=True, ge=1, le=DIMS_LIMIT)
    levels: int = Field(strict=True, ge=1, le=64)
    fraction_bits: Literal[8]


def load(path: Path) -> Tree:
    """Read a tree that `Tree.save` wrote.

    Raises
    ------
    UsageError
        If the file is missing, truncated, of another format, its arrays do not fit together, or its nodes make no tree.
    """
    arrays = read_npz(path, kinds=REAL + TEXT)
    text = arrays.pop("header", None)
    if text is None or text.shape or text.dtype.kind != "U":
        raise UsageError(f"{path}: not a vocabulary tree (expected a text 'header' in it)")
    with damaged(f"{path}: header: not JSON"):
        content = parse_json(text.item().encode(), f"{path}: header")  # no lone surrogate gets past either
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        given = content.get("format") if isinstance(content, dict) else content
        raise UsageError(f"{path}: expected the format {FORMAT!r}, got {str(given)[:80]!r}")
    header = validate(_Header, content, f"{path}: header")
    levels = _levels(header.clusters, header.dims, header.levels, arrays, str(path))
    _check_nodes(header.clusters, levels, str(path))
    return _tree(header.clusters, header.dims, levels, arrays, str(path))


def from_arrays(clusters: int, dims: int, levels: int, arrays: Mapping[str, np.ndarray], where: str = "tree") -> Tree:
    """Return the tree that `Tree.arrays` took apart.

    Raises
    ------
    UsageError
        If an array is missing, or of another type or shape than the others ask for.
    """
    return _tree(clusters, dims, _levels(clusters, dims, levels, arrays, where), arrays, where)


def _levels(clusters: int, dims: int, levels: int, arrays: Mapping[str, np.ndarray], where: str) -> list[Level]:
    made = []
    for number in range(levels):
        names = [f"{name}_{number}" for name in ("paths", "centres", "counts")]
        if missing := [name for name in names if name not in arrays]:
            raise UsageError(f"{where}: has no {', '.join(missing)}")
        own = [arrays[name] for name in names]
        nodes = own[0].size
        expected = (np.uint64, (nodes,)), (np.uint16, (nodes, clusters, dims)), (np.uint32, (nodes, clusters))
        for name, array, (dtype, shape) in zip(names, own, expected, strict=True):
            if array.dtype != dtype or array.shape != shape:
                raise UsageError(
                    f"{where}: {name}: expected {np.dtype(dtype)} {shape}, got {array.dtype} {array.shape}"
                )
        made.append(Level(*own))
    return made


def _check_nodes(clusters: int, levels: Sequence[Level], where: str) -> None:
    """Refuse nodes of a file that are no child of the level above, or not in order: numbering rests on both."""
    if clusters ** len(levels) > 1 << 64:
        raise UsageError(f"{where}: paths of {len(levels)} levels to the base {clusters} have more than 64 bits")
    children: np.ndarray = np.zeros(1, np.uint64)  # the root
    for number, level in enumerate(levels):
        paths = level.paths
        if not paths.size or (paths[1:] <= paths[:-1]).any() or not np.isin(paths, children).all():
            above = f"children of the nodes of level {number - 1}" if number else "the root, 0"
            raise UsageError(f"{where}: paths_{number}: expected ascending paths of {above}, got {_excerpt(paths)}")
        if (most := level.centres.max()) > 255 * ONE:
            raise UsageError(f"{where}: centres_{number}: expected at most {255 * ONE}, got {most}")
        children = (paths[:, None] * np.uint64(clusters) + np.arange(clusters, dtype=np.uint64)).ravel()


def _excerpt(values: np.ndarray) -> str:
    return f"{values[:5].tolist()}{' ...' if values.size > 5 else ''}"


def _tree(clusters: int, dims: int, levels: Sequence[Level], arrays: Mapping[str, np.ndarray], where: str) -> Tree:
    tree = Tree(clusters, dims, levels)
    points = arrays.get("points", np.empty(0))
    if points.dtype != np.uint32 or points.ndim != 1 or (points.size and points.max() >= tree.words):
        raise UsageError(f"{where}: points: expected uint32 numbers of {tree.words} words, got {points.dtype}")
    tree.points = points
    return tree
