"""Build a vocabulary tree from photographs, then find the photographs that look most like another one.

python examples/search_photographs.py build photographs/*.jpg -o tree.npz --device gpu
python examples/search_photographs.py search tree.npz query.jpg photographs/*.jpg
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from perfport import backend
from perfport.machine import platforms
from perfport.machine.discovery import discover
from perfport.workload import DeviceInfo, InfrastructureError, PerfportError, UsageError
from perfport.workloads.vocab_tree import data, passes, query, tree
from perfport.workloads.vocab_tree.builder.build import Build
from perfport.workloads.vocab_tree.builder.host_memory import PrivatePoints
from perfport.workloads.vocab_tree.builder.jobs import Settings
from perfport.workloads.vocab_tree.builder.workers import LocalWorker, loader_of


def describe(path: str) -> np.ndarray:
    """Return the SIFT descriptors of an image file, uint8, (count, 128)."""
    import cv2

    image = cv2.imread(path, cv2.IMREAD_GRAYSCALE)
    if image is None:
        raise UsageError(f"{path}: not a readable image")
    return data.describe(np.asarray(image))


def choose(selector: str) -> DeviceInfo:
    """Return the first healthy device that a selector names, and make its OpenCL runtime the only one loaded."""
    for info in discover():
        if info.healthy and info.matches(selector):
            platforms.use([info.runtime] if info.runtime else [])
            return info
    raise InfrastructureError(f"--device: no healthy device is {selector!r} (perfport devices lists them)")


def build(arguments: argparse.Namespace) -> None:
    """Build a tree from all descriptors of the images."""
    points = np.concatenate([describe(path) for path in arguments.images])
    info = choose(arguments.device)
    limit = None if arguments.memory_limit is None else int(arguments.memory_limit * 1e6)
    settings = Settings(
        arguments.clusters, arguments.levels, arguments.iterations, arguments.seed, points.shape[1], memory_limit=limit
    )
    device = backend.get(info.backend).open(info)
    worker = LocalWorker(device, loader_of(device), settings, passes.defaults(info, settings.clusters, settings.dims))
    try:
        run = Build(PrivatePoints(points), settings, [worker])
        built = run.run()
    finally:
        worker.close()
    built.save(arguments.output)
    seconds = f"{run.report.seconds:.2f} s on {info.id}"
    print(f"{len(points)} descriptors, {built.words} words in {seconds} -> {arguments.output}")


def search(arguments: argparse.Namespace) -> None:
    """Rank images by their words in common with a query."""
    vocabulary = tree.load(arguments.tree)
    index = query.InvertedFile(
        vocabulary.words, [query.quantise(vocabulary, describe(path)) for path in arguments.images]
    )
    scores = index.scores([query.quantise(vocabulary, describe(arguments.query))])[0]
    for number in np.argsort(-scores)[: arguments.count]:
        print(f"{scores[number]:.3f} {arguments.images[number]}")


def main() -> int:
    """Parse arguments; errors of the suite go to standard error without a traceback."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(required=True)
    building = commands.add_parser("build", help="make a tree")
    building.add_argument("images", nargs="+")
    building.add_argument("-o", "--output", required=True, type=Path, help="tree to write (.npz)")
    building.add_argument("--clusters", type=int, default=10)
    building.add_argument("--levels", type=int, default=4)
    building.add_argument("--iterations", type=int, default=10)
    building.add_argument("--seed", type=int, default=0)
    building.add_argument("--memory-limit", type=float, help="device memory to use, in MB; what is free unless given")
    building.add_argument("--device", default="all", help="as in experiments: gpu, cuda, opencl:pocl, ...")
    building.set_defaults(run=build)
    searching = commands.add_parser("search", help="rank images")
    searching.add_argument("tree", type=Path)
    searching.add_argument("query")
    searching.add_argument("images", nargs="+")
    searching.add_argument("--count", type=int, default=5)
    searching.set_defaults(run=search)
    arguments = parser.parse_args()
    try:
        arguments.run(arguments)
    except (PerfportError, ImportError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
