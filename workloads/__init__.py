"""The workloads: one folder each."""
