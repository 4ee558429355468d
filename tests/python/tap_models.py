"""Models whose taps can be compared."""

from recorded import Net, pair, same


class Inside(Net):
    """Taps a tensor in the middle of its step."""

    def forward(self, x):
        hidden = self.norm(self.fc1(x))
        self.tap(hidden, "hidden", grad=True)
        return self.fc2(hidden * 2)


def tapped(cls=Net, *args, **options):
    """A compiled and an eager model, and a function that taps both alike."""
    models = pair(cls, *args, **options)
    for model in models:
        model.get_params()
    return models, lambda *a, **k: [model.tap(*a, **k) for model in models]


def equal(taps):
    recorded, eager = taps
    for mine, its in ((recorded.value, eager.value), (recorded.grad, eager.grad)):
        assert (mine is None) == (its is None)
        if mine is not None:
            same(mine, its)
