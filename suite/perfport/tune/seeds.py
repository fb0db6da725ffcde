"""Where a search begins: what was tuned on this device, on its siblings of the same vendor, and anywhere else."""

from __future__ import annotations

from collections.abc import Iterator

from ..machine.device_profile import DeviceProfile, all_profiles, family, own_profiles
from ..machine.tuned import by_distance
from .space import Config
from .target import Goal

#: Vendors by a word of what drivers call them.
VENDORS = ("nvidia", "advanced micro devices", "amd", "intel", "arm", "apple", "qualcomm")


def seeds(goal: Goal) -> list[Config]:
    """Return configurations to begin with, the most promising first.

    Of each profile the winners, of this driver family and the nearest size first, and what came next to them, then what
    the literature gives for the workload; a value that a tunable does not have becomes the nearest that it has.
    """
    profiles = sorted([*own_profiles(), *all_profiles().values()], key=lambda each: _distance(each, goal))
    ranked = [list(_of(profile, goal)) for profile in profiles]
    most = max((len(each) for each in ranked), default=0)
    alternating = [each[rank] for rank in range(most) for each in ranked if rank < len(each)]
    return [goal.space.nearest(config, goal.defaults) for config in alternating]


def _distance(profile: DeviceProfile, goal: Goal) -> int:
    """0: this device, 1: of its vendor, 2: any other."""
    if profile.names(goal.device.name):
        return 0
    return 1 if vendor(profile.vendor) == vendor(goal.device.vendor) else 2


def vendor(name: str) -> str:
    """Return a vendor by one name, however drivers and profiles write it."""
    known = next((each for each in VENDORS if each in name.lower()), name.lower())
    return "amd" if known == "advanced micro devices" else known


def _of(profile: DeviceProfile, goal: Goal) -> Iterator[Config]:
    by_family = profile.found_by(goal.name, family(goal.device))
    found = [each for entries in by_family for each in by_distance(entries, goal.size) if each.parameters]
    yield from (each.parameters for each in found)
    for each in found:
        yield from each.next
    published = {name: each.value for name, each in profile.tuning.get(goal.workload.name, {}).items()}
    if published.keys() & goal.variant.tunables.keys():
        yield published
