"""What a batch costs: a part of its own, and a part for each request in it."""

NEAR = 1 / 64  # of the new batch in what is known: about so many batches are remembered
DOUBT = 1.0  # variance of sizes, in requests squared, at which half of what they tell is believed


class Cost:
    """A line through the sizes and times of the last batches. Where their sizes hardly differ, the time is taken for
    that of the requests: a part of its own is only what was seen.

    >>> cost = Cost()
    >>> for size in (1, 30, 8, 20) * 50:
    ...     cost.add(size, 0.1 + 0.01 * size)
    >>> round(cost.own, 2)
    0.1
    """

    def __init__(self):
        self.count = 0
        self.size = self.seconds = self.variance = self.covariance = 0.0

    def add(self, size, seconds):
        self.count += 1
        part = max(NEAR, 1 / self.count)
        larger, longer = size - self.size, seconds - self.seconds
        self.size += part * larger
        self.seconds += part * longer
        self.variance = (1 - part) * (self.variance + part * larger * larger)
        self.covariance = (1 - part) * (self.covariance + part * larger * longer)

    def expected(self, size):
        """Seconds of a batch of this size."""
        if not self.count:
            return 0.0
        return max(0.0, self.seconds + self.for_each * (size - self.size))

    @property
    def for_each(self):
        """Seconds of a batch for each request in it."""
        return (self.covariance + DOUBT * self.seconds / self.size) / (self.variance + DOUBT)

    @property
    def own(self):
        """Seconds of a batch that do not depend on its size."""
        if not self.count:
            return 0.0
        return max(0.0, self.seconds - self.for_each * self.size)

    @property
    def thrifty(self):
        """Requests from which on the part of its own is at most a fifth of a batch's time."""
        return 4 * self.own / self.for_each if self.count and self.for_each else 0.0
