"""Steps: traffic is known where that of every step is."""

from __future__ import annotations

from perfport.model.work import Traffic
from perfport.workload import Enqueue
from perfport.workload.step import total_traffic


class Unknown:
    """A step of which nobody knows what it causes."""

    def launch(self) -> None: ...

    def traffic(self) -> None: ...


def test_what_is_enqueued_causes_the_same_each_time() -> None:
    done: list[int] = []
    step = Enqueue(lambda: done.append(1), Traffic(flops=3))
    step.launch()
    step.launch()
    assert done == [1, 1] and step.traffic() == Traffic(flops=3)


def test_totals() -> None:
    step = Enqueue(lambda: None, Traffic(flops=3, dram_read=4))
    assert total_traffic([step, step]) == Traffic(flops=6, dram_read=8)
    assert total_traffic([step, Unknown()]) is None and total_traffic([]) is None
