"""Work of one training, from the counts that the device keeps and the shape of its launches (kernels/smo.cl)."""

from __future__ import annotations

from dataclasses import dataclass

from perfport.workload import Traffic, ceil_div

Quantities = dict[str, float]


def best(group: int, groups: int, kinds: int) -> Quantities:
    """Work of reducing the work-items' candidates, of one kind or two, to a group's; of one kind all read the index."""
    if group == 1:
        return {"local_write": (4.0 if kinds == 1 else 16.0) * groups}
    stored = group + min(group, 32) - 1 + 32 * (group > 32)
    read = 8 * kinds * (group - 1) + (4 * group if kinds == 1 else 0)
    return {"local_read": 1.0 * groups * read, "local_write": 8.0 * kinds * groups * stored}


def total(*parts: Quantities) -> Quantities:
    """Sum by quantity."""
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: sum(part.get(name, 0.0) for part in parts) for name in names}


@dataclass(frozen=True)
class Training:
    """How a training was launched, and how often each part of it ran.

    Attributes
    ----------
    points, padded : int
        Points, and points with padding.
    chunk, groups, group, lanes, rows, width, lane_points : int
        Macros of the kernels: points of a work-group, work-groups, work-items of one, the shape of its teams, points of
        a work-item and step in passes over f.
    vectors : int
        Vectors of ``width`` words in a row of the data.
    slots : int
        Kernel rows that the cache holds.
    first_order, staged : bool
        Whether work-groups' points lie in local memory.
    resident : bool
        Whether all iterations are one launch, in which work-items ask at two barriers whether the grid is in step.
    picks, updates, models : int
        Executions of the steps, those after convergence included.
    iterations, computed : int
        Iterations that changed the model, and kernel rows computed.
    calls : float
        Executions of ``rows``; one that computes two rows reads the data once.
    """

    points: int
    padded: int
    chunk: int
    groups: int
    group: int
    lanes: int
    rows: int
    width: int
    lane_points: int
    vectors: int
    slots: int
    first_order: bool
    staged: bool
    resident: bool
    picks: int
    updates: int
    models: int
    iterations: int
    computed: int
    calls: float

    def issued(self) -> Quantities:
        """Operations and bytes as work-items issue them."""
        parts = (
            (1, self.reset()), (self.picks, self._pick()), (self.updates, self._update()),
            (self.iterations, self._iteration()), (self.models, self.model()), (self.calls, self.data()),
            (self.computed, self.row()), (self.staged, self._staging()),
        )  # fmt: skip
        return total(*({name: times * value for name, value in part.items()} for times, part in parts))

    @property
    def _items(self) -> int:
        return self.groups * self.group

    @property
    def _blocks(self) -> int:
        """Blocks of rows that the work-groups' teams walk."""
        block = self.group // self.lanes * self.rows
        whole, rest = divmod(self.padded, self.chunk)
        return whole * ceil_div(self.chunk, block) + ceil_div(rest, block)

    @property
    def _choices(self) -> float:
        """Integer operations on the flags of all points in one pass; one point at a time, a compiler saves one of 4."""
        return (3.0 if self.lane_points == 1 else 4.0) * self.padded

    def _best(self, kinds: int = 1) -> Quantities:
        """``best`` or, of two kinds of candidates, ``best_of_each`` by every work-group."""
        return best(self.group, self.groups, kinds)

    def update_f(self) -> Quantities:
        """Update of f and choice of the next candidates."""
        written, read = (40, 16) if self.first_order else (20, 8)  # by one work-item of each group
        own = {
            "flops": 10.0 * self.padded, "integer_ops": self._choices,
            "global_read": 20.0 * self.padded + read * self.groups,
            "global_write": 8.0 * self.padded + written * self.groups,
            "local_read": (20.0 if self.first_order else 12.0) * self.groups,
        }  # fmt: skip
        return total(self._best(2), own)

    def reset(self) -> Quantities:
        written = 20.0 * self.padded + 8 * self.slots + 4 * (24 + 3)
        return total(self.update_f(), {"global_read": 4.0 * self.padded, "global_write": written})

    def _pick(self) -> Quantities:
        """Up to the test for convergence: every work-group reduces the candidates of all."""
        own = {
            "flops": 1.0 * self._items, "global_read": 8.0 * self.groups**2 + 8 * self._items,
            "local_read": 8.0 * self._items,
        }  # fmt: skip
        return total(self._best(2), own)

    def _update(self) -> Quantities:
        """Up to the question whether training is over."""
        return {"global_read": 4.0 * self._items}

    def _iteration(self) -> Quantities:
        """What every iteration does besides computing rows: the step is every work-item's, the bookkeeping is one's."""
        step = {
            "flops": 7.0 * self._items, "integer_ops": 5.0 * self._items, "global_read": 52.0 * self._items + 24,
            "global_write": 44.0,
        }  # fmt: skip
        if self._evicting:
            step = total(step, {"global_read": 8.0 * self._items + 32, "global_write": 40.0})
        if self.first_order:
            return total(self.update_f(), step, {"global_read": 8.0 * self._items + 8, "global_write": 16.0})
        gains = {
            "flops": 6.0 * self.padded + self.groups, "integer_ops": self._choices,
            "global_read": 16.0 * (self.padded + self.groups), "global_write": 20.0 * self.groups,
            "local_read": 4.0 * self.groups,
        }  # fmt: skip
        choice = {"global_read": 4.0 * self.groups**2, "local_read": 8.0 * self._items * self.resident}
        return total(self.update_f(), step, gains, choice, self._best(), self._best())

    @property
    def _evicting(self) -> bool:
        """Whether rows have to make room for others."""
        return self.slots < self.points

    def model(self) -> Quantities:
        return {
            "flops": 1.0 * self.points,
            "global_read": 4.0 * self.points + 20,
            "global_write": 4.0 * self.points + 20,
        }

    def data(self) -> Quantities:
        """One walk over the data, with the point (or two) beside each team's rows."""
        if self.staged:
            row, teams = 4.0 * self.width * self.vectors, self.group // self.lanes
            return {
                "global_read": row * self.groups, "local_write": row * self.groups,
                "local_read": row * self._blocks * teams * (1 + self.rows),
            }  # fmt: skip
        if self.lanes == 1:
            return {"global_read": 4.0 * self.width * self.vectors * self.padded * (2 + self.rows) / self.rows}
        teams = self.group // self.lanes
        return {"global_read": 4.0 * self.width * self.vectors * self._blocks * teams * (2 + self.rows)}

    def _staging(self) -> Quantities:
        """All points, into local memory."""
        data = 4.0 * self.width * self.vectors * self.points
        return {"global_read": data, "local_write": data}

    def row(self) -> Quantities:
        """One row of the kernel: distances, sums, exponentials, and its place in the cache."""
        row = {
            "flops": 1.0 * self.padded, "special_ops": 1.0 * self.padded, "global_write": 4.0 * self.padded + 4,
            "global_read": 8.0 * self._items * self._evicting,
        }  # fmt: skip
        if self.lanes == 1:
            distances = 3 * self.width * self.vectors + self.width - 1
            return total(row, {"flops": float(distances * self.padded)})
        elements = self._blocks * self.group // self.lanes * self.rows
        words = elements * self.lanes  # each team's partial sums
        flops = 3.0 * self.width * self.vectors * elements + (self.width - 1) * words + words
        return total(row, {"flops": flops, "local_read": 4.0 * words, "local_write": 4.0 * words})

    def traffic(self, data_bytes: int, cache_bytes: int) -> Traffic:
        """Issued work, and DRAM traffic by a model: what fits into the last-level cache is fetched once.

        Parameters
        ----------
        data_bytes, cache_bytes : int
            Size of the padded data and of the device's last-level cache.
        """
        row = 4.0 * self.padded
        fits = data_bytes + min(self.slots, self.computed) * row + 6 * row <= cache_bytes
        again = row * self.iterations * 2 + data_bytes * (1 if self.staged else self.calls)
        read = data_bytes if fits else again
        return Traffic(dram_read=read, dram_write=row * self.computed, **self.issued())
