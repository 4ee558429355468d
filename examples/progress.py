"""Progress of a training run."""

from __future__ import annotations

import sys


class Progress:
    """A bar on a terminal, a line per epoch elsewhere."""

    def __init__(self, epochs: int, images: int) -> None:
        self.epochs, self.images = epochs, images
        self.bar = None
        if sys.stderr.isatty():
            from tqdm import tqdm

            self.bar = tqdm(total=epochs * images, unit="image", unit_scale=True)

    def batch(self, images: int) -> None:
        """Counts further images as seen."""
        if self.bar:
            self.bar.update(images)

    def epoch(self, number: int, loss: float, accuracy: float, speed: float) -> None:
        """Ends an epoch."""
        if self.bar:
            self.bar.set_postfix(loss=f"{loss:.4f}", accuracy=f"{accuracy:.2%}")
        else:
            print(
                f"epoch {number:2}/{self.epochs}  loss {loss:.4f}  "
                f"test accuracy {accuracy:.2%}  {speed:,.0f} images/s",
                flush=True,
            )

    def close(self) -> None:
        """Leaves the bar as it is."""
        if self.bar:
            self.bar.close()
