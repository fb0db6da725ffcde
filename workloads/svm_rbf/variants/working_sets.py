"""Work of a training by working sets, from counts that the device keeps and the shape of its launches (smo_sets.cl)."""

from __future__ import annotations

from dataclasses import dataclass

from perfport.workload import Traffic, ceil_div

from .training_work import Quantities, Training, best, total


@dataclass(frozen=True)
class WorkingSets:
    """How a training was launched, and how often each part of it ran.

    Attributes
    ----------
    shape : Training
        Of its passes over all points; ``calls`` and ``computed`` are those of the launches that fill the cache.
    chunk : int
        Points of a work-group in passes over all.
    tile, fillers : int
        Points of a work-group that fills the cache, and how many share each tile's rows.
    enqueued, sets : int
        Working sets that were launched, those after convergence included, and those that changed the model.
    hits, stepped : int
        Members whose rows were there, and members whose multipliers changed, over all sets.
    """

    shape: Training
    chunk: int
    tile: int
    fillers: int
    enqueued: int
    sets: int
    hits: int
    stepped: int

    def issued(self) -> Quantities:
        """Operations and bytes as work-items issue them."""
        s = self.shape
        parts = (
            (1, s.reset()), (s.models, s.model()), (s.computed, s.row()), (s.calls, s.data()),
            (self.sets, s.update_f()), (self.enqueued, self._tests()), (self.sets, self._choose()),
            (s.calls, self._fill()), (1, self._gather()),
            (self.sets, self._begin()), (s.iterations + self.sets, self._look()), (s.iterations, self._step()),
            (self.sets, self._update()), (self.stepped, self._change()),
        )  # fmt: skip
        return total(*({name: times * value for name, value in part.items()} for times, part in parts))

    @property
    def _members(self) -> int:
        """Places of a set."""
        return 2 * self.shape.groups

    @property
    def _taken(self) -> float:
        """Places that hold a member, on average."""
        return (self.hits + self.shape.computed) / self.sets if self.sets else 0.0

    @property
    def _tile_items(self) -> int:
        return ceil_div(self.shape.padded, self.tile) * self.shape.group

    def _tests(self) -> Quantities:
        """Whether training is over: asked by all launches, found by the first of each set. How many have changed."""
        s = self.shape
        launched = self._tile_items * self.fillers + s.group * (self._members + 1 + s.groups)
        own = {"flops": 1.0 * s.group, "global_read": 8.0 * s.groups + 8 * s.group + 4 * launched}
        counted = {
            "local_read": 4.0 * s.group * s.group, "local_write": 4.0 * s.group, "integer_ops": 2.0 * s.group * s.group,
        }  # fmt: skip
        return total(best(s.group, 1, 2), own, counted, {"local_read": 8.0 * s.group})

    def _choose(self) -> Quantities:
        """Members by group, their slots, and a list of the rows that are missing."""
        s = self.shape
        return {
            "global_read": 4.0 * s.group + 14 * self._members + 4 * self._taken + 12,
            "global_write": 8.0 * self._members + 20, "local_read": 8.0 * s.group * s.group,
            "local_write": 8.0 * s.group, "integer_ops": 4.0 * s.group * s.group + 3 * self._members,
        }  # fmt: skip

    def _fill(self) -> Quantities:
        """Which rows to compute, for a walk over the data."""
        return {"global_read": 24.0 * self._tile_items}

    def _gather(self) -> Quantities:
        """The kernel between members, in all sets; each is taken to have as many as the average."""
        s, taken = self.shape, self._taken
        asked = s.group * (self._members + self.fillers * self._tile_items / s.group)
        read = 4.0 * asked + taken * (4 * s.group + 4 * self._members + 4 * taken)
        return {"global_read": self.sets * read, "global_write": self.sets * 4.0 * self._members * taken}

    def _begin(self) -> Quantities:
        """State of the members, to where steps are taken, and how many were."""
        return {
            "global_read": 4.0 * self._members + 16 * self._taken + 8, "global_write": 12.0,
            "local_write": 12.0 * self._members,
        }  # fmt: skip

    def _look(self) -> Quantities:
        """The violation of the set, and the candidate for the step."""
        s, slots = self.shape, ceil_div(self._members, self.shape.group) * self.shape.group
        own = {
            "flops": 6.0 * slots + 2 * s.group, "integer_ops": 2.0 * slots, "local_read": 36.0 * s.group,
            "local_write": 4.0 * self._members,
        }  # fmt: skip
        return total(best(s.group, 1, 2), best(s.group, 1, 1), own)

    def _step(self) -> Quantities:
        """The step, and f of all members."""
        s, slots = self.shape, ceil_div(self._members, self.shape.group) * self.shape.group
        return {
            "flops": 3.0 * slots + 2 * s.group, "integer_ops": 1.5 * s.group,
            "global_read": 8.0 * self._members, "local_write": 8.0 * self._members,
        }  # fmt: skip

    def _update(self) -> Quantities:
        """Of f, at all points, by slices of what has changed."""
        s = self.shape
        slices = s.group // min(s.group, self.chunk)
        return {
            "global_read": 4.0 * s.groups * s.group + 8 * s.padded, "global_write": 8.0 * s.padded,
            "flops": 7.0 * slices * s.padded, "local_read": 4.0 * slices * s.padded,
            "local_write": 4.0 * slices * s.padded,
        }  # fmt: skip

    def _change(self) -> Quantities:
        """A member whose multiplier has changed, as all groups read it, and its part in f at all points."""
        s = self.shape
        return {
            "flops": 2.0 * s.padded + s.groups, "local_read": 8.0 * s.padded, "local_write": 8.0 * s.groups,
            "global_read": 4.0 * s.padded + 8 * s.groups + 8, "global_write": 16.0,
        }  # fmt: skip

    def traffic(self, data_bytes: int, cache_bytes: int) -> Traffic:
        """Issued work, and DRAM traffic by a model: what fits into the last-level cache is fetched once.

        Parameters
        ----------
        data_bytes, cache_bytes : int
            Size of the padded data and of the device's last-level cache.
        """
        s = self.shape
        row = 4.0 * s.padded
        fits = data_bytes + min(s.slots, s.computed) * row + 6 * row <= cache_bytes
        read = data_bytes if fits else data_bytes * s.calls + row * self.stepped
        return Traffic(dram_read=read, dram_write=row * s.computed, **self.issued())
