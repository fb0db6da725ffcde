"""Variants of the problems of pruned convolution."""
