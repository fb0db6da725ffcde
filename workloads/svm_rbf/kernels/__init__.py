"""Kernel sources of svm_rbf."""
