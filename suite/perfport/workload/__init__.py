"""What a workload is made of; all that one imports of the harness is here."""

from ..backend import Artifact, Buffer, Kernel, OpenDevice
from ..machine.environment import usable_cores
from ..model.arithmetic import ceil_div, round_up
from ..model.arrays import REAL, TEXT, read_npy, read_npz
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
from ..model.files import opened, parse_json
from ..model.files import read as read_file
from ..model.inputs import damaged, xml
from ..model.record import OutputError
from ..model.schema import Model, validate
from ..model.work import Traffic, Work
from .blocks import in_blocks
from .discovery import Workload, code_files, discover, load_copy
from .execution import Built, build
from .libraries import THREADS, thread_count, version_of
from .mismatch import Sampled
from .names import name_or_path
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
    "REAL",
    "ROLES",
    "TEXT",
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
    "Model",
    "OpenDevice",
    "Output",
    "OutputError",
    "Peer",
    "PerfportError",
    "Problem",
    "RefusedError",
    "Sampled",
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
    "code_files",
    "compare",
    "compare_exact",
    "compare_signed",
    "damaged",
    "digest_of",
    "discover",
    "in_blocks",
    "load_copy",
    "name_or_path",
    "nearest",
    "opened",
    "parse_json",
    "read_file",
    "read_npy",
    "read_npz",
    "read_source",
    "round_up",
    "signs",
    "thread_count",
    "usable_cores",
    "validate",
    "version_of",
    "xml",
]
