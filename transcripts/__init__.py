"""What happened in a run: the event schema, the run folder that is written as things happen, and its review.

Imports nothing else of ours, so a run can be read where no tool and no model is installed.
"""
