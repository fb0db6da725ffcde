"""Kernels of known work, and variants that declare it rightly or wrongly."""
