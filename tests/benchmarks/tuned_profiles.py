"""What searches on another machine found, into a profile of this checkout: run by hand.

    python tests/benchmarks/tuned_profiles.py device_profiles/h200.yaml results/committed/searches/h200-*

FOUND are folders of searches. What their logs say of devices that the profile names is written as `perfport tune` would
have written it there, in the order of the searches; the rest of the profile stays byte for byte as it is.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from perfport.machine.device_profile import DeviceProfile, load_profile
from perfport.model import schema
from perfport.model.files import read_text, write
from perfport.tune.log import LOG, Entry, Result, Search, read
from perfport.tune.profiles import combined, entry, joined, split


def merge(profile: Path, logs: dict[Path, list[Entry]]) -> int:
    """Write the answers of searches into ``profile``; returns how many. Raises `SystemExit` for another device's."""
    head, held = split(read_text(profile), profile)
    own = load_profile(profile)
    count = 0
    begun = {folder: next(each for each in log if isinstance(each, Search)) for folder, log in logs.items()}
    for folder in sorted(logs, key=lambda each: begun[each].started):
        search = begun[folder]
        for result in (each for each in logs[folder] if isinstance(each, Result) and each.answer is not None):
            device = search.devices[result.device]
            if not own.names(device["name"]):
                raise SystemExit(f"{folder}: expected a device that {profile} names, got {device['name']!r}")
            known = held.setdefault(result.device.rpartition(":")[0], {})
            made = entry(result, search.started[:10], device["driver"], search.commit, search.seed)
            known[result.variant] = combined(known.get(result.variant), made)
            count += 1
    content = joined(head, {family: dict(sorted(entries.items())) for family, entries in sorted(held.items())})
    schema.validate(DeviceProfile, schema.parse(content, str(profile)), str(profile))
    write(profile, content)
    return count


def main() -> None:
    """Read the command line, and merge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("profile", type=Path)
    parser.add_argument("found", type=Path, nargs="+")
    asked = parser.parse_args()
    print(f"{asked.profile}: {merge(asked.profile, {each: list(read(each / LOG)) for each in asked.found})} answers")


if __name__ == "__main__":
    main()
