"""How many threads a worker computes with where the settings do not say.

Note [A processor for the front]
Workers have all processors among them, as a large model has use for each and the front then has little to do. A small
model is the other way round: the front is busy, and a worker's threads, which look out for more work before they
sleep, take from it the processor that it needs to bring that work. On two processors and at 12,000 requests a second
that made the slowest of a hundred requests wait for 50 ms instead of 1. So the workers do with one processor less
while the front takes more than BUSY of one, until it takes less than CALM; with a single bound a steady load near it
would change the number again and again.
"""

import time

import cresset

LOOK = 0.05  # seconds at least over which it is seen what the front takes
BUSY, CALM = 0.25, 0.15  # of a processor


class Threads:
    """The threads of each worker of a model."""

    def __init__(self, wished):
        self.wished = wished  # 0: as many as there are processors for
        self.processors = cresset.get_num_threads()  # what a container allows, or the environment wishes
        self.front_is_busy = False
        self.seen = self.clocks()

    @staticmethod
    def clocks():
        """Seconds: now, and taken by this process."""
        return time.perf_counter(), time.process_time()

    def look(self):
        """See how much of a processor the front took since the last time."""
        (before, used), (now, using) = self.seen, self.clocks()
        if now - before >= LOOK:
            self.front_is_busy = (using - used) / (now - before) > (CALM if self.front_is_busy else BUSY)
            self.seen = now, using

    def of_each(self, workers):
        """How many threads each of so many workers has for its next batch."""
        if self.wished:
            return self.wished
        self.look()
        return max(1, (self.processors - self.front_is_busy) // max(1, workers))
