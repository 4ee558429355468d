"""Checkpoints: a model as ONNX and what else a program needs to go on as safetensors, replaced as
one; and reading the states of other formats. docs/checkpoints.md describes them.

What is read is not trusted: every size that a file declares is compared with its bytes before
anything of that size is made, and every failure is a CheckpointError.
"""
