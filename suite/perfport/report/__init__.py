"""Reports, made from stored runs alone."""
