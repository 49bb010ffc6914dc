"""One stream read by several: fork gives each branch all samples, demux each its own.

The branches share the source and what was read of it. Iterators of all branches that begin together are one generation;
to begin a branch again begins the next, for which the source is read from its start (`_begin_iterator`).
"""

import copy as copying
import warnings
from collections import deque

from .each import check_can_be_sent
from .files import StreamWrapper
from .pipe import IterDataPipe, functional_datapipe

__all__ = ["DemultiplexerIterDataPipe", "ForkerIterDataPipe"]


class Branches(IterDataPipe):
    """The source of some branches and what they have read of it."""

    name: str

    def __init__(self, datapipe, num_instances, buffer_size):
        self.main_datapipe, self.num_instances, self.buffer_size = datapipe, num_instances, buffer_size
        if buffer_size < 0:
            warnings.warn(
                f"Unlimited buffer size is set for `{self.name}`, please be aware of OOM at random places",
                UserWarning,
                stacklevel=4,
            )
        self.reset()

    def unread(self):
        """The attributes of branches that have read nothing."""
        return {"_source": None, "_begun": False, "_ended": False, "_stopped": [False] * self.num_instances}

    def reset(self):
        self.__dict__.update(self.unread())

    def _state(self):
        return {**self.__dict__, **self.unread()}

    def is_every_instance_exhausted(self):
        return self._ended and all(self._stopped)

    def samples(self, branch):
        """The iterator of a branch."""
        generation = self._valid_iterator_id
        if not self._begun:
            self._source, self._begun = iter(self.main_datapipe), True
        try:
            while True:
                try:
                    sample = self.next_of(branch)
                except StopIteration:
                    return
                yield sample
        finally:
            if self._valid_iterator_id == generation:  # else the branches were reset since
                self._stopped[branch] = True
                if all(self._stopped):
                    self._source = None
                    self.forget()

    def read(self):
        """The next sample of the source; StopIteration, from then on always, at its end."""
        if self._ended:
            raise StopIteration
        try:
            return next(self._source)
        except StopIteration:
            self._ended, self._source = True, None
            raise

    def check_room(self, waiting, who):
        if 0 <= self.buffer_size < waiting:
            raise BufferError(f"{who} buffer overflow, buffer size {self.buffer_size} is insufficient.")

    def next_of(self, branch):
        """The next sample of a branch; StopIteration at its end."""
        raise NotImplementedError

    def forget(self):
        """Close the files among samples that nobody will read."""
        raise NotImplementedError

    def length_of(self, branch):
        raise NotImplementedError


class _ChildDataPipe(IterDataPipe):
    """A branch."""

    def __init__(self, main_datapipe, instance_id):
        self.main_datapipe, self.instance_id = main_datapipe, instance_id

    def __iter__(self):
        return self.main_datapipe.samples(self.instance_id)

    def __len__(self):
        return self.main_datapipe.length_of(self.instance_id)

    def _begin_iterator(self):
        main = self.main_datapipe
        if main._valid_iterator_id is None:
            main._valid_iterator_id = 0
        elif main._valid_iterator_id == self._valid_iterator_id:
            if not main.is_every_instance_exhausted():
                warnings.warn(
                    "Some child DataPipes are not exhausted when __iter__ is called. We are resetting the buffer and "
                    "each child DataPipe will read from the start again.",
                    UserWarning,
                    stacklevel=2,
                )
            main._valid_iterator_id += 1
            main.reset()
        self._valid_iterator_id, self._number_of_samples_yielded = main._valid_iterator_id, 0
        return self._valid_iterator_id

    def _is_current(self, number):
        return number == self._valid_iterator_id == self.main_datapipe._valid_iterator_id


def branched(main):
    return [_ChildDataPipe(main, branch) for branch in range(main.num_instances)]


def check_count(num_instances):
    if num_instances < 1:
        raise ValueError(f"Expected `num_instances` larger than 0, but {num_instances} is found")


# ---- fork


@functional_datapipe("fork")
class ForkerIterDataPipe(IterDataPipe):
    """Several pipes, each with all samples of `datapipe`, which is read once (functional name: ``fork``).

    Args:
        num_instances: how many; the result is a list of them, or for 1 `datapipe` itself.
        buffer_size: how far the first branch may be ahead of the last; -1: any number.
        copy: each branch gets the same objects (None), or a "shallow" or "deep" copy of them.
    """

    def __new__(cls, datapipe, num_instances, buffer_size=1000, copy=None):
        check_count(num_instances)
        if num_instances == 1:
            return datapipe
        return branched(_ForkerIterDataPipe(datapipe, num_instances, buffer_size, copy))


def _same(sample):
    return sample


_COPIES = {None: _same, "shallow": copying.copy, "deep": copying.deepcopy}


class _ForkerIterDataPipe(Branches):
    name = "fork"

    def __init__(self, datapipe, num_instances, buffer_size=1000, copy=None):
        if copy not in _COPIES:
            raise ValueError(f"Unknown copy method `{copy}` requested, choose one of None, `shallow` or `deep`.")
        self.copy_fn = _COPIES[copy]
        super().__init__(datapipe, num_instances, buffer_size)

    def unread(self):
        # `buffer` holds the samples from number `_first` on, `_places` the number that each branch reads next.
        return {**super().unread(), "buffer": deque(), "_first": 0, "_places": [0] * self.num_instances}

    def next_of(self, branch):
        at = self._places[branch] - self._first
        if at == len(self.buffer):
            self.buffer.append(self.read())
        sample = self.buffer[at]
        self._places[branch] += 1
        if at == 0 and min(self._places) > self._first:
            self.buffer.popleft()
            self._first += 1
        self.check_room(len(self.buffer), "ForkerIterDataPipe")
        return self.copy_fn(sample)

    def forget(self):
        while self.buffer:
            StreamWrapper.close_streams(self.buffer.popleft())

    def length_of(self, branch):
        return len(self.main_datapipe)

    def __len__(self):
        return len(self.main_datapipe)


# ---- demux


@functional_datapipe("demux")
class DemultiplexerIterDataPipe(IterDataPipe):
    """Several pipes, each with the samples that `classifier_fn` gives its number (functional name: ``demux``).

    Args:
        num_instances: how many; the result is a list of them.
        drop_none: leave out samples for which it gives None, instead of an error.
        buffer_size: how many samples may wait for branches that are not read; -1: any number.
    """

    def __new__(cls, datapipe, num_instances, classifier_fn, drop_none=False, buffer_size=1000):
        check_count(num_instances)
        check_can_be_sent(classifier_fn)
        return branched(_DemultiplexerIterDataPipe(datapipe, num_instances, classifier_fn, drop_none, buffer_size))


class _DemultiplexerIterDataPipe(Branches):
    name = "demux"

    def __init__(self, datapipe, num_instances, classifier_fn, drop_none, buffer_size):
        self.classifier_fn, self.drop_none = classifier_fn, drop_none
        super().__init__(datapipe, num_instances, buffer_size)

    def unread(self):
        return {**super().unread(), "child_buffers": [deque() for _ in range(self.num_instances)]}

    def next_of(self, branch):
        while not self.child_buffers[branch]:
            sample = self.read()
            which = self.classifier_fn(sample)
            if which is None and self.drop_none:
                StreamWrapper.close_streams(sample)
                continue
            if which is None or not 0 <= which < self.num_instances:
                raise ValueError(
                    f"Output of the classification fn should be between 0 and {self.num_instances - 1}. {which} is "
                    "returned."
                )
            if which == branch:
                return sample
            self.child_buffers[which].append(sample)
            self.check_room(sum(map(len, self.child_buffers)), "DemultiplexerIterDataPipe")
        return self.child_buffers[branch].popleft()

    def forget(self):
        for waiting in self.child_buffers:
            while waiting:
                StreamWrapper.close_streams(waiting.popleft())

    def length_of(self, branch):
        raise TypeError("demux: how many samples a branch has is known once they are read")
