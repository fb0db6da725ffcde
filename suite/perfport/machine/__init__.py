"""This machine: the devices that it has, their profiles, runtimes and simulator, the lock of a chip."""
