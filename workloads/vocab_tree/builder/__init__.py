"""Builds of vocabulary trees: queues of nodes, host threads, chunks, device workers."""
