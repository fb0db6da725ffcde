"""Retrieval with a tree: descriptors to words, images to weighted words, scores by an inverted file.

D. Nister, H. Stewenius, "Scalable Recognition with a Vocabulary Tree", CVPR 2006; weights as in J. Sivic, A. Zisserman,
"Video Google", ICCV 2003.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from perfport.workload import UsageError, in_blocks

from . import fixed_point
from .tree import ABSENT, Tree

if TYPE_CHECKING:
    from scipy.sparse import csr_array

BLOCK, PARTS = 1 << 14, 16  # points that are multiplied together; so many of these are one core's piece of work


@dataclass(frozen=True)
class Tables:
    """A tree as arrays over its split nodes, level by level, node 0 the root.

    Attributes
    ----------
    centres : uint16, (nodes, clusters, dims)
    halves : int32, (nodes, clusters)
    children : uint32, (nodes, clusters)
        Number of the child's node, `ABSENT` where it is a word.
    leaves : uint32, (nodes, clusters)
        Number of the word, `ABSENT` where the child is a node.
    depth : int
        Levels.
    """

    centres: np.ndarray
    halves: np.ndarray
    children: np.ndarray
    leaves: np.ndarray
    depth: int


def tables(tree: Tree) -> Tables:
    """Return a tree's tables."""
    centres = np.concatenate([level.centres for level in tree.levels])
    offset, children = 0, []
    for level, own in zip(tree.levels, tree.children, strict=True):
        offset += len(level.paths)
        children.append(np.where(own == ABSENT, ABSENT, own + np.uint32(offset)))
    return Tables(
        centres, fixed_point.halves(centres), np.concatenate(children), np.concatenate(tree.leaves), len(tree.levels)
    )


def centres(tree: Tree) -> np.ndarray:
    """Return the centre of each word, float64, shape (words, dims)."""
    table = tables(tree)
    leaves = table.leaves != ABSENT
    own = np.empty((tree.words, tree.dims))
    own[table.leaves[leaves]] = table.centres[leaves] / fixed_point.ONE
    return own


def quantise(tree: Tree, points: np.ndarray) -> np.ndarray:
    """Return the word of each point, uint32.

    Raises
    ------
    UsageError
        If the points are no bytes, or of other dimensions than the tree's.
    """
    if points.ndim != 2 or points.dtype != np.uint8 or points.shape[1] != tree.dims:
        raise UsageError(f"points: expected uint8 (points, {tree.dims}), got {points.dtype} {points.shape}")
    table = tables(tree)
    words = np.empty(len(points), np.uint32)
    node, here = np.zeros(len(points), np.uint32), np.arange(len(points))
    while len(here):
        order = here[np.argsort(node[here], kind="stable")]  # points of a node are multiplied by its centres together
        numbers, first = np.unique(node[order], return_index=True)
        parts = [
            (number, order[begin : min(begin + BLOCK, end)])
            for number, start, end in zip(numbers, first, [*first[1:], len(order)], strict=True)
            for begin in range(start, end, BLOCK)
        ]

        def descend(some: slice, parts: list[tuple[np.integer, np.ndarray]] = parts) -> None:
            for number, which in parts[some]:
                nearest = fixed_point.scores(points[which], table.centres[number]).argmax(axis=1)
                words[which] = table.leaves[number, nearest]  # until a deeper level writes another
                node[which] = table.children[number, nearest]

        in_blocks(descend, len(parts), PARTS)
        here = order[node[order] != ABSENT]
    return words


class InvertedFile:
    """Images by words, weighted by term frequency and inverse document frequency.

    Parameters
    ----------
    words : int
        Words of the tree.
    images : list of uint32 arrays
        The words of each image's descriptors.
    """

    def __init__(self, words: int, images: list[np.ndarray]) -> None:
        self.words = words
        counts = self._counts(images)
        occurs = np.bincount(counts.indices, minlength=words)
        self.idf = np.log(max(1, len(images)) / np.maximum(occurs, 1))
        self._weights = self._weighted(counts).T.tocsr()  # by word: the lists of an inverted file

    def _counts(self, images: list[np.ndarray]) -> csr_array:
        from scipy.sparse import csr_array  # slow to import, and every command imports every workload

        image = np.repeat(np.arange(len(images)), [len(words) for words in images])
        word = np.concatenate(images) if images else np.empty(0, np.uint32)
        if word.size and word.max() >= self.words:
            raise UsageError(f"images: expected numbers of {self.words} words, got {word.max()}")
        words = csr_array((np.ones(len(word)), (image, word.astype(np.int64))), shape=(len(images), self.words))
        words.sum_duplicates()
        return words

    def _weighted(self, counts: csr_array) -> csr_array:
        weighted = counts.copy()
        weighted.data *= self.idf[weighted.indices]
        norms = np.sqrt(np.asarray(weighted.multiply(weighted).sum(axis=1)).ravel())
        weighted.data /= np.repeat(np.where(norms > 0, norms, 1), np.diff(weighted.indptr))
        return weighted

    def scores(self, queries: list[np.ndarray]) -> np.ndarray:
        """Return cosines between queries and images, float64, (queries, images)."""
        return np.asarray((self._weighted(self._counts(queries)) @ self._weights).todense())


def average_precision(ranking: np.ndarray, relevant: np.ndarray) -> float:
    """Return the mean of precision at each relevant image of a ranking (image numbers, best first)."""
    hits = np.isin(ranking, relevant)
    return float((np.cumsum(hits)[hits] / (np.flatnonzero(hits) + 1)).mean()) if hits.any() else 0.0
