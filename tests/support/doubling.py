"""The problem of workloads that tests write into folders of their own: twice a vector, whose reference is exact."""

from __future__ import annotations

_PROBLEM = """class Double(Problem):
    name = "double"
    metric = Metric("double.rate", "GB/s", "higher", "bytes per second")
    presets = @P@
    check_sizes = ({"n": 65}, {"n": 131})

    class Parameters(BaseModel):
        n: int

    def __init__(self, parameters, seed):
        super().__init__(parameters, seed)
        self.n = parameters.n
        self.x = np.random.default_rng(seed).uniform(1.0, 2.0, self.n).astype(np.float32)

    def work(self, *which):
        return Work(flops=self.n, read_bytes=4 * self.n, write_bytes=4 * self.n)

    def metric_value(self, seconds):
        return 8 * self.n / seconds / 1e9

    def outputs(self, *which):
        return {"y": Output(np.float32, (self.n,))}

    def check(self, outputs, *which):
        return {name: compare(value, 2.0 * self.x, self.n, max_abs=1e-6) for name, value in outputs.items()}
"""


def problem(presets: str) -> str:
    """Return the class ``Double`` as source; ``presets`` is the source of its presets, and of lines behind them."""
    return _PROBLEM.replace("@P@", presets)
