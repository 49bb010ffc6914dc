"""Pipes that put samples together and take them apart: batch, unbatch, groupby."""

from .each import check_can_be_sent
from .pipe import IterDataPipe, functional_datapipe, length

__all__ = ["BatcherIterDataPipe", "DataChunk", "GrouperIterDataPipe", "UnBatcherIterDataPipe"]


class DataChunk(list):
    """A list of samples that belong together.

    >>> cresset.utils.data.DataChunk(range(3)).as_str("> ")
    '> [0, 1, 2]'
    """

    def __init__(self, items):
        super().__init__(items)
        self.items = list(self)

    def as_str(self, indent=""):
        """The samples as text, behind `indent`."""
        return f"{indent}[{', '.join(map(str, self))}]"

    def raw_iterator(self):
        """An iterator over what the chunk was made of."""
        yield from self.items


def batches(count, size, drop_last):
    return count // size if drop_last else -(-count // size)


@functional_datapipe("batch")
class BatcherIterDataPipe(IterDataPipe):
    """`batch_size` samples at a time (functional name: ``batch``).

    Args:
        drop_last: leave out a last batch that is not full.
        wrapper_class: what a list of samples is made into.
    """

    def __init__(self, datapipe, batch_size, drop_last=False, wrapper_class=DataChunk):
        if batch_size <= 0:
            raise AssertionError(f"Batch size is required to be larger than 0! Got {batch_size}")
        super().__init__()
        self.datapipe, self.batch_size, self.drop_last = datapipe, batch_size, drop_last
        self.wrapper_class = wrapper_class

    def __iter__(self):
        batch = []
        for sample in self.datapipe:
            batch.append(sample)
            if len(batch) == self.batch_size:
                yield self.wrapper_class(batch)
                batch = []
        if batch and not self.drop_last:
            yield self.wrapper_class(batch)

    def __len__(self):
        return batches(*length(self, self.datapipe), self.batch_size, self.drop_last)


@functional_datapipe("unbatch")
class UnBatcherIterDataPipe(IterDataPipe):
    """The samples of batches (functional name: ``unbatch``).

    Args:
        unbatch_level: how many levels of lists are taken apart; -1: all.
    """

    def __init__(self, datapipe, unbatch_level=1):
        self.datapipe, self.unbatch_level = datapipe, unbatch_level

    def __iter__(self):
        if self.unbatch_level < -1:
            raise ValueError(f"unbatch_level must be -1 or >= 0, got {self.unbatch_level}")
        for batch in self.datapipe:
            yield from self._samples(batch, self.unbatch_level)

    def _samples(self, batch, level):
        if level == 0 or (level == -1 and not isinstance(batch, list)):
            yield batch
        elif not isinstance(batch, list):
            raise IndexError(f"unbatch_level {self.unbatch_level} exceeds the depth of the DataPipe")
        else:
            for part in batch:
                yield from self._samples(part, max(level - 1, -1))


@functional_datapipe("groupby")
class GrouperIterDataPipe(IterDataPipe):
    """Samples that `group_key_fn` gives the same key, together (functional name: ``groupby``).

    Args:
        keep_key: give (key, group) instead of the group.
        buffer_size: how many samples may wait; when so many do, the largest group goes.
        group_size: a group of so many goes at once; none grows larger.
        guaranteed_group_size: a group that goes because the buffer is full has at least so many.
        drop_remaining: leave out groups smaller than that, instead of an error.
    """

    def __init__(
        self, datapipe, group_key_fn, *, keep_key=False, buffer_size=10000, group_size=None,
        guaranteed_group_size=None, drop_remaining=False,
    ):  # fmt: skip
        check_can_be_sent(group_key_fn)
        if group_size is not None and buffer_size is not None and not 0 < group_size <= buffer_size:
            raise AssertionError(
                f"group_size must be > 0 and <= buffer_size, got group_size={group_size}, buffer_size={buffer_size}"
            )
        if guaranteed_group_size is None:
            guaranteed_group_size = group_size if buffer_size is not None else None
        elif group_size is None or not 0 < guaranteed_group_size <= group_size:
            raise AssertionError("guaranteed_group_size must be > 0 and <= group_size and group_size must be set")
        self.datapipe, self.group_key_fn, self.keep_key = datapipe, group_key_fn, keep_key
        self.max_buffer_size, self.group_size = buffer_size, group_size
        self.guaranteed_group_size, self.drop_remaining = guaranteed_group_size, drop_remaining
        self.wrapper_class = DataChunk
        self.reset()

    def reset(self):
        self.buffer_elements, self.curr_buffer_size = {}, 0

    def _take(self, key):
        group = self.buffer_elements.pop(key)
        self.curr_buffer_size -= len(group)
        return group

    def _given(self, key, group):
        chunk = self.wrapper_class(group)
        return (key, chunk) if self.keep_key else chunk

    def __iter__(self):
        waiting, least = self.buffer_elements, self.guaranteed_group_size
        for sample in self.datapipe:
            key = self.group_key_fn(sample)
            waiting.setdefault(key, []).append(sample)
            self.curr_buffer_size += 1
            if len(waiting[key]) == self.group_size:
                yield self._given(key, self._take(key))
            if self.curr_buffer_size == self.max_buffer_size:
                largest = max(waiting, key=lambda k: len(waiting[k]))
                group = self._take(largest)
                if least is None or len(group) >= least:
                    yield self._given(largest, group)
                elif not self.drop_remaining:
                    raise RuntimeError("Failed to group items", str(group))
        for key in list(waiting):
            yield self._given(key, self._take(key))

    def _state(self):
        return {**self.__dict__, "buffer_elements": {}, "curr_buffer_size": 0}
