"""Kernel sources of sparse_conv."""
