"""Variants of vocab_tree: the ladder of k-means kernels, fused passes, batches of nodes, whole builds, peers."""
