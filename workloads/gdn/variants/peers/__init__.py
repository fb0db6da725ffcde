"""Peers: what the libraries that people use instead need for the same problems, one module per library."""
