"""Generalized divisive normalization: forward, the ladder of its gamma gradient, backward, training step.

Source: "Ramble in CUDA optimization" (NVIDIA GeForce GTX 1080); the operator is from J. Balle, V. Laparra,
E. P. Simoncelli, 2016.
"""
