"""Detect faces in an image with perfport's kernels, and write the image with their rectangles.

python examples/detect_faces.py photograph.jpg -o faces.png --device gpu
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from PIL import Image, ImageDraw
from pydantic import ValidationError

from perfport import backend, workload
from perfport.machine import platforms
from perfport.machine.discovery import discover
from perfport.workload import DeviceInfo, InfrastructureError, PerfportError, Session


def choose(selector: str) -> DeviceInfo:
    """Return the first healthy device that a selector names, and make its OpenCL runtime the only one loaded."""
    for info in discover():
        if info.healthy and info.matches(selector):
            platforms.use([info.runtime] if info.runtime else [])
            return info
    raise InfrastructureError(f"--device: no healthy device is {selector!r} (perfport devices lists them)")


def detect(arguments: argparse.Namespace) -> list[tuple[int, int, int, int]]:
    """Return the faces of an image as (x, y, width, height)."""
    shipped = workload.discover()["face_detection"]
    cls, variant = shipped.problem("faces"), shipped.variant("faces", arguments.variant)
    parameters = {
        "source": arguments.image, "cascade": arguments.cascade, "scale_factor": arguments.scale_factor,
        "neighbours": arguments.neighbours,
    }  # fmt: skip
    problem = cls(cls.Parameters.model_validate(parameters), 0)
    info = choose(arguments.device)
    variant.require(info)
    session = Session(backend.get(info.backend).open(info), problem, shipped.folder)
    tunables = {name: tunable.default_for(info) for name, tunable in variant.tunables.items()}
    try:
        built = workload.build(variant, session, tunables, {})
        try:
            built.variant.launch()
            return [tuple(face[1:]) for face in built.variant.results()["faces"].tolist()]
        finally:
            built.release()
    finally:
        session.close()


def main() -> int:
    """Parse arguments, detect, draw; errors of the suite go to standard error without a traceback."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("image", help="path of an image, or 'astronaut' or 'grace_hopper'")
    parser.add_argument("-o", "--output", required=True, type=Path, help="picture to write")
    parser.add_argument("--cascade", default="frontalface_default", help="stock name or path of an OpenCV cascade")
    parser.add_argument("--device", default="all", help="as in experiments: gpu, cuda, opencl:pocl, ...")
    parser.add_argument("--variant", default="compacted")
    parser.add_argument("--scale-factor", type=float, default=1.1)
    parser.add_argument("--neighbours", type=int, default=3)
    arguments = parser.parse_args()
    try:
        faces = detect(arguments)
        from perfport.workloads.face_detection.images import picture

        image = Image.fromarray(picture(arguments.image)).convert("RGB")
        draw = ImageDraw.Draw(image)
        for x, y, width, height in faces:
            draw.rectangle((x, y, x + width - 1, y + height - 1), outline=(255, 60, 0), width=max(2, width // 40))
        image.save(arguments.output)
    except ValidationError as error:
        first = error.errors()[0]
        print(f"{'.'.join(map(str, first['loc']))}: {first['msg']}", file=sys.stderr)
        return 2
    except (PerfportError, OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{len(faces)} face{'s' * (len(faces) != 1)}: {', '.join(map(str, faces))} -> {arguments.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
