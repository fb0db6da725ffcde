"""What a cubin holds: machine instructions by kernel, read from its ELF sections."""

from __future__ import annotations

import struct

INSTRUCTION_BYTES = 16  # from compute capability 7.0 on


def machine_instructions(cubin: bytes) -> int:
    """Count the machine instructions in a cubin's code sections, those that pad a section's end included.

    Raises
    ------
    ValueError
        For anything that is no whole 64-bit ELF file.
    """
    try:
        return _instructions(cubin)
    except (struct.error, IndexError) as error:
        raise ValueError(f"a damaged ELF file ({error})") from None


def _instructions(cubin: bytes) -> int:
    if cubin[:5] != b"\x7fELF\x02":
        raise ValueError("not a 64-bit ELF file")
    table = struct.unpack_from("<Q", cubin, 0x28)[0]
    entry, count, names_at = struct.unpack_from("<HHH", cubin, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", cubin, table + i * entry) for i in range(count)]
    names = headers[names_at][4]
    code = 0
    for name, _, _, _, offset, size in headers:
        end = cubin.index(b"\0", names + name)
        if cubin[names + name : end].startswith(b".text."):
            if offset + size > len(cubin):
                raise ValueError(f"a damaged ELF file (code to byte {offset + size} of {len(cubin)})")
            code += size
    return code // INSTRUCTION_BYTES
