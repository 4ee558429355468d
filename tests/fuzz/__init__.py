"""Differential testing: random programs as people write them, run in every available way, must
agree with eager execution bit for bit.

    python -m fuzz --programs 1000 --jobs 2 --findings DIR    (in tests/, or `make fuzz`)

`catalogue` lists what may be drawn, `draw` makes a `program` of it, `run` executes its text in one
of the `ways`, `compare` checks what was seen against eager execution, `shrink` makes it small.
"""
