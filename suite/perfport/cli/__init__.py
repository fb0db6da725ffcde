"""The command line: one module per group of commands; each parses, calls the package, and ends with an exit code."""

from .app import main

__all__ = ["main"]
