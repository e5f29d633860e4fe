"""The device: what it is, what it can do at most, what it does when measured, and the least time a problem needs on it.

`datasheet`, `nvml`, `cpu` and `report` need no torch; `rates` and `cost` import it and belong to the judge's process.
"""
