"""Kernel sources of gdn."""
