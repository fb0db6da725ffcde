"""Cheats that change nothing but themselves: they share a group."""
