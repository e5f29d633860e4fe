"""Experiments: a short script on the device, in the sandbox of a candidate, for the model to look at what it prints.

Nothing that an experiment prints is evidence of anything: no verdict and no time of a candidate comes from here.
"""

from tools.experiment.runner import Experiment, run_script

__all__ = ["Experiment", "run_script"]
