"""Kernels with planted bugs that leave the result right: what a sanitizer is for."""
