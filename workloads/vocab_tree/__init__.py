"""Vocabulary trees: hierarchical k-means over image descriptors, host queues and streams, one or several devices.

Source: patent CN105573834 (Fudan University), construction of vocabulary trees on a heterogeneous platform. The tree is
from D. Nister, H. Stewenius, "Scalable Recognition with a Vocabulary Tree", CVPR 2006.
"""
