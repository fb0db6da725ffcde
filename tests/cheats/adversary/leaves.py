"""Ends its worker: the group after it gets a fresh process, whatever the cheat before it has changed."""

import os

from perfport.workload import Setup

from .honest import HonestExtremes


class Leaves(HonestExtremes):
    name, rung = "leaves", 9

    def __init__(self, setup: Setup) -> None:
        os._exit(0)
