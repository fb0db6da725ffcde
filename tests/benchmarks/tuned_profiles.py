"""What searches on another machine found, into a profile of this checkout: run by hand.

    python tests/benchmarks/tuned_profiles.py device_profiles/h200.yaml FOUND...

FOUND are profiles that ``perfport tune -o`` wrote, or folders that are looked through for them (those of
``campaign.py`` lie beside their searches). Their entries replace those of the same driver family and variant; the rest
of the profile stays byte for byte as it is. Each FOUND must be of the same device.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from perfport.machine.device_profile import DeviceProfile, load_profile
from perfport.model import schema
from perfport.model.files import read_text, write
from perfport.tune.profiles import joined, split


def merge(profile: Path, found: list[Path]) -> int:
    """Write the entries of ``found`` into ``profile``; returns how many. Raises `SystemExit` for another device's."""
    head, held = split(read_text(profile), profile)
    own = load_profile(profile)
    count = 0
    for path in found:
        other = load_profile(path)
        if not own.names(other.title):
            raise SystemExit(f"{path}: expected a device that {profile} names, got {other.title!r}")
        for family, entries in split(read_text(path), path)[1].items():
            held[family] = dict(sorted({**held.get(family, {}), **entries}.items()))
            count += len(entries)
    content = joined(head, dict(sorted(held.items())))
    schema.validate(DeviceProfile, schema.parse(content, str(profile)), str(profile))
    write(profile, content)
    return count


def main() -> None:
    """Read the command line, and merge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("profile", type=Path)
    parser.add_argument("found", type=Path, nargs="+")
    asked = parser.parse_args()
    files = [file for path in asked.found for file in (sorted(path.rglob("profile.yaml")) if path.is_dir() else [path])]
    print(f"{asked.profile}: {merge(asked.profile, files)} entries of {len(files)} profiles")


if __name__ == "__main__":
    main()
