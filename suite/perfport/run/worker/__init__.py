"""The worker: a child process that runs groups of cases and sends records back.

It announces each step before taking it, so that the parent can attribute a crash or a hang to its case
(`perfport.run.messages`).
"""
