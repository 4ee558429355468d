"""Differential testing: random programs as people write them, run in every way that there is, must
agree with eager execution to the bit.

    python -m fuzz --programs 1000 --jobs 2 --findings DIR    (in tests/, or `make fuzz`)

`catalogue` lists what is drawn, `draw` makes a `program` of it, `run` executes its text in one of
the `ways`, `compare` holds what was seen against eager execution, `shrink` makes it small.
"""
