"""The agent: command line, loop, model clients, budgets and batch runs.

`agent.session.run_problem` solves one problem, `agent.loop.solve` is the loop itself. Imports none of it by itself, so
that the command line starts fast.
"""
