"""Cheats that change the process, its device, functions or clock: each has a worker of its own."""
