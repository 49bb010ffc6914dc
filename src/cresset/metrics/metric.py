"""What all metrics share."""

import cresset


class Metric:
    """A number about many batches. Subclasses name their sums in `reset`, add to them in `update`, and divide in
    `compute`.
    """

    def __init__(self):
        self.reset()

    def reset(self):
        """Forget everything."""
        raise NotImplementedError(f"{type(self).__name__}: a metric needs a method reset()")

    def update(self, *args):
        """Add a batch."""
        raise NotImplementedError(f"{type(self).__name__}: a metric needs a method update(...)")

    def compute(self):
        """The value for everything since the last reset, as a tensor."""
        raise NotImplementedError(f"{type(self).__name__}: a metric needs a method compute()")

    def __call__(self, *args):
        """Add a batch and give the value of that batch alone."""
        kept = dict(self.__dict__)
        self.reset()
        with cresset.no_grad():
            self.update(*args)
            value = self.compute()
        batch = dict(self.__dict__)
        self.__dict__.update(kept)
        self._merge(batch)
        return value

    def _merge(self, batch):
        """Add the sums of another state of the same metric to this one's."""
        for name in self.sums:
            mine, other = getattr(self, name), batch[name]
            setattr(self, name, mine + other)

    sums: tuple[str, ...] = ()

    def state_dict(self):
        """The sums, for a checkpoint."""
        return {name: getattr(self, name) for name in self.sums}

    def load_state_dict(self, state):
        for name in self.sums:
            setattr(self, name, state[name])

    def __repr__(self):
        return f"{type(self).__name__}()"
