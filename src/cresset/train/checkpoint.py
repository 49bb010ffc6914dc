"""Checkpoint: everything a run needs to go on, in one file that is either the old one or the new one, never half of
each.

Note [The same bits]
A resumed run gives the bits of one that never stopped if nothing that the next step reads is missing from the file:
weights and buffers, the optimizer's moments, the schedule, the scale, the place in the epoch, and all generators from
which somebody draws: cresset's, Python's, NumPy's, the GPUs', and those that a loader or its sampler owns. The loader
draws the order of a running epoch again from the state its generators had when the epoch began, and goes to its place;
then the generators get the state of the file.
"""

import os
import random
import sys

import cresset

FORMAT = 1


class Checkpoint:
    """The state of a run in the file `path`: of every object that is given, and of the generators.

    Args:
        path: the file. It is replaced in one step when the new one is whole, so a process that dies while it writes
            loses nothing.
        generators: keep the random numbers, too.
        objects: what has `state_dict()` and `load_state_dict()`, by name: model, optimizer, scheduler, scaler, loader,
            …; None stands for "not used in this run".

    >>> model = nn.Linear(2, 1)
    >>> optimizer = cresset.optim.SGD(model.parameters(), lr=0.1)
    >>> checkpoint = cresset.train.Checkpoint("run.pt", model=model, optimizer=optimizer)
    >>> checkpoint.save(epoch=3)
    >>> checkpoint.load()
    {'epoch': 3}
    """

    def __init__(self, path, *, generators=True, **objects):
        for name, value in objects.items():
            if value is not None and not (hasattr(value, "state_dict") and hasattr(value, "load_state_dict")):
                raise TypeError(
                    f"Checkpoint: {name} is a {type(value).__name__}, which has no state_dict() and load_state_dict(); "
                    "give plain values to save() instead"
                )
        self.path, self.generators = os.fspath(path), generators
        self.objects = {name: value for name, value in objects.items() if value is not None}

    def exists(self):
        """Whether there is a file to load."""
        return os.path.isfile(self.path)

    def save(self, **user):
        """Write the file. `user` is kept beside the objects and comes back from `load`: numbers, text, lists, dicts,
        tensors.
        """
        states = {name: value.state_dict() for name, value in self.objects.items()}
        content = {"cresset_checkpoint": FORMAT, "objects": states, "user": user}
        if self.generators:
            content["generators"] = generator_states(self._loaders())
        folder = os.path.dirname(self.path)
        if folder:
            os.makedirs(folder, exist_ok=True)
        cresset.save(content, self.path)

    def load(self, *, map_location=None, only=None):
        """Give every object its state from the file and return what `save` was given.

        Args:
            map_location: where tensors go, as in cresset.load.
            only: names of the objects to load, others and the generators are left alone: `only=["model"]` for a
                finished run.
        """
        content = cresset.load(self.path, map_location=map_location)
        if not isinstance(content, dict) or "cresset_checkpoint" not in content:
            raise ValueError(f"Checkpoint: {self.path} was not written by Checkpoint.save; read it with cresset.load")
        if content["cresset_checkpoint"] > FORMAT:
            raise ValueError(
                f"Checkpoint: {self.path} has format {content['cresset_checkpoint']}, this version of cresset reads "
                f"up to {FORMAT}"
            )
        saved = content["objects"]
        wanted = list(self.objects) if only is None else list(only)
        missing = [name for name in wanted if name not in saved]
        if missing:
            raise KeyError(f"Checkpoint: {self.path} has no {', '.join(missing)}; it has {', '.join(saved)}")
        for name in wanted:
            self.objects[name].load_state_dict(saved[name])
        if only is None and self.generators and "generators" in content:
            restore_generators(content["generators"], self._loaders())
        return content["user"]

    def _loaders(self):
        return {
            name: value
            for name, value in self.objects.items()
            if hasattr(value, "sampler") or hasattr(value, "generator")
        }

    def __repr__(self):
        return f"Checkpoint({self.path!r}, {', '.join(self.objects)})"


def _owned(loader):
    """The generators that belong to a loader or its sampler."""
    found = {
        "loader": getattr(loader, "generator", None),
        "sampler": getattr(getattr(loader, "sampler", None), "generator", None),
    }
    return {name: value for name, value in found.items() if isinstance(value, cresset.Generator)}


def generator_states(loaders=None):
    """The states of all generators as plain data."""
    version, numbers, spare = random.getstate()
    states = {
        "cresset": cresset.get_rng_state(),
        "python": [version, cresset.tensor(numbers, dtype=cresset.int64), spare],
        "loaders": {
            name: {kind: generator.get_state() for kind, generator in _owned(loader).items()}
            for name, loader in (loaders or {}).items()
        },
    }
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        kind, key, place, has_spare, spare = numpy.random.get_state()
        states["numpy"] = [
            kind,
            cresset.tensor(key.tolist(), dtype=cresset.int64),
            int(place),
            int(has_spare),
            float(spare),
        ]
    if cresset.cuda.is_available():
        states["cuda"] = cresset.cuda.get_rng_state_all()
    return states


def restore_generators(states, loaders=None):
    """Continue all generators from what `generator_states` gave."""
    cresset.set_rng_state(states["cresset"].cpu())
    version, numbers, spare = states["python"]
    random.setstate((version, tuple(numbers.tolist()), spare))
    if "numpy" in states:
        try:
            import numpy
        except ImportError:
            pass
        else:
            kind, key, place, has_spare, spare = states["numpy"]
            numpy.random.set_state((kind, numpy.array(key.tolist(), dtype=numpy.uint32), place, has_spare, spare))
    if "cuda" in states and cresset.cuda.is_available():
        cresset.cuda.set_rng_state_all([state.cpu() for state in states["cuda"]])
    for name, loader in (loaders or {}).items():
        saved = states["loaders"].get(name, {})
        for kind, generator in _owned(loader).items():
            if kind in saved:
                generator.set_state(saved[kind].cpu())
