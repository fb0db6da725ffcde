"""Whole pages, each the answer of a command."""
