"""Kernel sources of vocab_tree."""
