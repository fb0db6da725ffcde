"""Measured ceilings of a device: what it reaches at best, found by sweeping kernel shapes.

One kernel shape is not a ceiling: on a CPU, one scalar FMA chain reaches a hundredth of what twelve chains of 16
lanes do, and a grid-stride read a tenth of a chunked one. So shapes are swept, the best one is sampled again,
and its median with its 95 % interval is the ceiling, reported with the shape that reached it.

`catalogue` lists the ceilings; each is a `kind.Kind` of one of the modules named after what it loads.
"""

from .cached import cache_file, load_cached, outdated, store
from .catalogue import KINDS
from .entry import MOVED, SWEEP_VERSION, Ceiling, Ceilings, Renewal
from .sweeping import probe_again, raise_to, renewed, sweep

__all__ = [
    "KINDS",
    "MOVED",
    "SWEEP_VERSION",
    "Ceiling",
    "Ceilings",
    "Renewal",
    "cache_file",
    "load_cached",
    "outdated",
    "probe_again",
    "raise_to",
    "renewed",
    "store",
    "sweep",
]
