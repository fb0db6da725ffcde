"""Viola-Jones face detection: an irregular workload whose windows differ in work by orders of magnitude.

Source: a book chapter on OpenCL optimisation of irregular workloads (AMD Radeon HD 7970, NVIDIA GTX 680); method:
P. Viola, M. Jones, "Rapid Object Detection using a Boosted Cascade of Simple Features", CVPR 2001.
"""
