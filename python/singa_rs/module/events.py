"""Events of TensorBoard, by its package."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter


def writer(folder: str) -> Any:
    """A new file of events in a folder."""
    return EventFileWriter(folder)


def event(step: int, figures: Mapping[str, float]) -> Any:
    """Figures at a step."""
    values = [Summary.Value(tag=name, simple_value=value) for name, value in figures.items()]
    return Event(wall_time=time.time(), step=step, summary=Summary(value=values))
