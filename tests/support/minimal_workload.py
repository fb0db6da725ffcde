"""A workload package of minimal size, for tests that change one thing in it."""

from __future__ import annotations

MINIMAL = '''"""A title.

More."""
from perfport.workload import Metric, Problem, Tunable, Variant
from pydantic import BaseModel


class P(Problem):
    name = "p"
    metric = Metric("t", "s", "lower", "d")
    presets = {"tiny": {"n": 9}}
    check_sizes = ({"n": 3}, {"n": 5})

    class Parameters(BaseModel):
        n: int

    def work(self): ...
    def metric_value(self, seconds): ...
    def outputs(self, *which): ...
    def check(self, outputs, *which): ...


class Base(Variant):
    problem = P

    def __init__(self, setup): ...
    def launch(self): ...


class A(Base):
    name = "a"
    rung = 2


class B(Base):
    name, role = "b", "control"


class C(Base):
    name, rung = "c", 1
'''
