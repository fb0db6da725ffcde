"""Variants of gdn: the source's ladder, its reductions, the fused products on three engines, peers."""
