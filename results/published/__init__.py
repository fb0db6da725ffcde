"""Published figures and known inconsistencies of the sources, one YAML file per workload."""
