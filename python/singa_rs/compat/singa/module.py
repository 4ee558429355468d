"""SINGA 3.0's `module`: its name for `model`."""

from __future__ import annotations

from ... import model
from ...device import Device

Model = model.Model

__all__ = ["Model", "Module"]


class Module(model.Module):
    """A model of a program for SINGA 3.0, which says where it runs by `on_device`."""

    def on_device(self, device: Device) -> None:
        """Moves every parameter and state to a device, in place (SINGA 3.0 Module.on_device).

        Raises:
            TypeError: `device` is not one.
        """
        self.to_device(device)
