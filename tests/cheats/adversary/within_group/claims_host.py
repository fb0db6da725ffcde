"""Says that it runs on the host, whose clock does not wait for the device.

Seen: here; kin of disabled synchronisation, METR.
Guard: launches of a variant that is `host` are refused, or waited for.
"""

from ..honest import HonestAffine


class ClaimsHost(HonestAffine):
    name, rung = "claims_host", 1
    host = True
