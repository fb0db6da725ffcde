"""From an experiment to records: plan, worker processes, clusters; what a run lacks; whether its code has changed."""
