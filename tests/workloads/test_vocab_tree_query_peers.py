"""Peers of retrieval: on the host every form gives exactly the words, also where they lie at many depths."""

from __future__ import annotations

import secrets

import numpy as np
import pytest
from peer_forms import forms

from perfport import workload
from perfport.workload import Session, Setup

TREES = workload.discover()["vocab_tree"]
CLS = TREES.variants["tree_query"]["torch_cpu"]


@pytest.mark.parametrize("parameters", CLS.problem.check_sizes, ids=str)
def test_every_form_gives_the_words(parameters: dict[str, int]) -> None:
    pytest.importorskip("torch")
    for tunables in forms(CLS):
        task = CLS.problem(CLS.problem.Parameters(**parameters), secrets.randbelow(2**31))
        peer = CLS(Setup(Session(None, task, TREES.folder), {**tunables, "block": 37}, {}))  # type: ignore[arg-type]
        for _ in range(2):
            peer.launch()
            outputs = peer.results()
            verified = task.verify(outputs, CLS.computes, CLS.precision)
            assert outputs["words"].dtype == np.uint32 and verified.passed, (task.seed, parameters, tunables, verified)
