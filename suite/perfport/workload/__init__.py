"""What a workload is made of; all that one imports of the harness is here."""

from ..backend import Artifact, Buffer, Kernel, OpenDevice
from ..model.arithmetic import ceil_div, round_up
from ..model.device import DeviceInfo
from ..model.errors import (
    CompileError,
    DeviceMemoryError,
    InfrastructureError,
    PerfportError,
    RefusedError,
    UnavailableError,
    UnsupportedError,
    UsageError,
    nearest,
)
from ..model.record import OutputError
from ..model.work import Traffic, Work
from .blocks import in_blocks
from .discovery import Workload, discover
from .execution import Built, build
from .libraries import THREADS, thread_count, usable_cores, version_of
from .outputs import Output, compare, compare_exact, compare_signed, digest_of, signs
from .peers import COMPILER, CudaPeer, HostPeer, Peer, TorchCudaPeer, TorchHostPeer, TorchPeer
from .problem import Metric, Problem
from .setup import POISON, Session, Setup
from .source import read_source
from .step import Enqueue, Step
from .variant import ROLES, Tunable, Variant

__all__ = [
    "COMPILER",
    "POISON",
    "ROLES",
    "THREADS",
    "Artifact",
    "Buffer",
    "Built",
    "CompileError",
    "CudaPeer",
    "DeviceInfo",
    "DeviceMemoryError",
    "Enqueue",
    "HostPeer",
    "InfrastructureError",
    "Kernel",
    "Metric",
    "OpenDevice",
    "Output",
    "OutputError",
    "Peer",
    "PerfportError",
    "Problem",
    "RefusedError",
    "Session",
    "Setup",
    "Step",
    "TorchCudaPeer",
    "TorchHostPeer",
    "TorchPeer",
    "Traffic",
    "Tunable",
    "UnavailableError",
    "UnsupportedError",
    "UsageError",
    "Variant",
    "Work",
    "Workload",
    "build",
    "ceil_div",
    "compare",
    "compare_exact",
    "compare_signed",
    "digest_of",
    "discover",
    "in_blocks",
    "nearest",
    "read_source",
    "round_up",
    "signs",
    "thread_count",
    "usable_cores",
    "version_of",
]
