"""What the model can call, and the evaluator behind it: build, judge, worker, sandbox, device.

`evaluator` is the way in for the agent, `toolbox` for the model; `types` are the records that both return. `build`,
`judge`, `worker`, `nursery` and `sandbox` are the kinds of process that a candidate meets, each a folder of its own.
"""
