"""Leaves the last row of 1024 as it was.

Seen: here.
Guard: whole outputs are scanned for poison.
"""

from ..honest import HonestAffine


class UnwrittenTail(HonestAffine):
    name, rung = "unwritten_tail", 12

    def compute(self) -> None:
        kernel, _, x, y, sums, rows, *rest = self.arguments()
        self.enqueue(kernel, self.n, x, y, sums, rows - 1, *rest)
