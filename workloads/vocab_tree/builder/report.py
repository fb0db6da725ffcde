"""What a build did, for its record."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Report:
    """What a build did.

    Attributes
    ----------
    nodes : dict
        Nodes by class.
    seconds_by_class, seconds_by_level : dict
        Seconds that workers spent on nodes of a class, and on splitting nodes of a level.
    chunk_loads, chunk_loads_expected, chunk_loads_naive : int
        Chunks loaded; what the traversal takes by `chunks.loads`; what it would take without keeping any.
    loaded_bytes : int
        Bytes of these chunks: over the seconds of the passes they give the rate that streaming reaches.
    pass_seconds : float
        Seconds that devices spent on passes over streamed nodes, without moving the points to children.
    streamed_seconds : float
        From the start of the build to the end of the last of these passes.
    passes : int
        Passes over streamed nodes.
    reseeded : int
        Empty classes filled again.
    lost : list of str
        Workers that ended before the build did.
    prepared_bytes : int
        Most host memory that prepared points took at a time.
    """

    nodes: dict[str, int] = field(default_factory=dict)
    seconds_by_class: dict[str, float] = field(default_factory=dict)
    seconds_by_level: dict[int, float] = field(default_factory=dict)
    chunk_loads: int = 0
    chunk_loads_expected: int = 0
    chunk_loads_naive: int = 0
    loaded_bytes: int = 0
    pass_seconds: float = 0.0
    streamed_seconds: float = 0.0
    passes: int = 0
    reseeded: int = 0
    lost: list[str] = field(default_factory=list)
    prepared_bytes: int = 0
    seconds: float = 0.0

    def add_seconds(self, level: int, seconds: float) -> None:
        """Add what was spent on splitting nodes of a level."""
        self.seconds_by_level[level] = self.seconds_by_level.get(level, 0.0) + seconds
