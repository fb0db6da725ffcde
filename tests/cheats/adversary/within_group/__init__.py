"""Cheats that change what their group shares, its problem, inputs or clock: each has a group of its own."""
