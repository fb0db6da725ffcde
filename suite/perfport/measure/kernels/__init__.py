"""Kernels of the harness itself: ceilings, cache flush, generators."""
