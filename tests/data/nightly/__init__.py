"""Cases whose time and luck are planted: what a nightly check is for.

``NIGHTLY_PLANTED`` is JSON, by variant: ``{"slowed": {"factor": 1.05}, "clock_b": {"fault": "crash"}}``. ``factor``
multiplies the work; ``fault`` is ``crash`` or ``wrong``. It takes no part in the source hash of a case.
"""
