"""Kernel files of variants, so that a page can show one beside the variant before it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...run.sources import KERNELS, shipped, variant_files
from ..parts.ladder import Ladder


def sources(ladders: Iterable[Ladder]) -> dict[str, Any]:
    """Return the kernel files of all variants of some ladders as they are now: text by file, files by variant.

    Those of workloads that ship or are installed; of others, whose code the page's maker may not have, there are none.
    """
    files: dict[str, str] = {}
    variants: dict[str, list[str]] = {}
    names = {(of.workload, of.problem, row.record.identity.variant) for of in ladders for row in of.rows}
    for workload, problem, variant in sorted(names):
        known = shipped(workload)
        held = known.variants.get(problem, {}).get(variant) if known else None
        if known is None or held is None:
            continue
        folder = known.folder.resolve()
        kernels = sorted(path for path in variant_files(known, held) if path.suffix in KERNELS)
        for path in kernels:
            files[f"{workload}/{path.relative_to(folder)}"] = path.read_text()
        variants[f"{workload}/{problem}/{variant}"] = [f"{workload}/{path.relative_to(folder)}" for path in kernels]
    return {"files": files, "variants": variants}
