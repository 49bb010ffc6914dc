"""An exchange that was begun: PyTorch's Work."""

import time
from datetime import timedelta

from .. import futures


class Work:
    """An exchange on its way.

    Args:
        poll: poll(microseconds) -> whether it is done; raises what went wrong.
        finish: called once when it is done: puts what came where it belongs.
        result: the tensors that it gives.
        keeps: what must live until then.
        alarm: alarm(seconds waited) looks around while it waits; raises if it is in vain.
        patience: seconds until a wait gives up.
        now: the clock.
        left: left(finish, keeps) is told when nobody holds this any more, and it is not done.
    """

    _done, _error, _left = True, None, None  # of one that was not made

    def __init__(
        self, poll=None, finish=None, result=(), keeps=(), alarm=None, patience=None, source=None, now=time.monotonic,
        left=None,
    ):  # fmt: skip
        self._poll, self._finish, self._result, self._keeps = poll, finish, list(result), keeps
        self._alarm, self._patience, self._source = alarm, patience, source
        self._now, self._left = now, left
        self._error, self._futures = None, []
        self._done = poll is None
        if self._done:
            self._end()

    def _end(self):
        finish, self._finish = self._finish, None
        self._done = True
        if finish is not None:
            finish()
        self._keeps = ()
        for future in self._futures:
            future.set_result(self._result)

    def __del__(self):
        if not self._done and self._error is None and self._left is not None:
            self._left(self._finish, self._keeps)

    def _step(self, microseconds):
        if self._error is not None:
            raise self._error
        if not self._done:
            try:
                if self._poll(microseconds):
                    self._end()
            except BaseException as error:
                if isinstance(error, Exception):
                    self._error = error
                raise
        return self._done

    def is_completed(self):
        """Whether it is done, well or not."""
        try:
            return self._step(0)
        except Exception:
            return True

    def is_success(self):
        """Whether it is done and nothing went wrong."""
        return self.is_completed() and self._error is None

    def exception(self):
        """What went wrong, or None."""
        return self._error

    def wait(self, timeout=timedelta(0)):
        """Wait until it is done; True. Raises what went wrong.

        Args:
            timeout: a timedelta; by default the group's.
        """
        if self._step(200):
            return True
        limit = timeout.total_seconds() or self._patience
        start, waited = self._now(), 0.0
        while not self._step(50_000 if waited < 1 else 200_000):
            waited = self._now() - start
            if self._alarm is not None:
                try:
                    self._alarm(waited, limit)
                except Exception as error:
                    self._error = error
                    raise
        return True

    def synchronize(self):
        """On the CPU, the same as wait."""
        self.wait()

    def block_current_stream(self):
        """On the CPU there is no stream; waits."""
        self.wait()

    def result(self):
        """The tensors that it gives."""
        self.wait()
        return self._result

    def source_rank(self):
        """Of a receive, who sent."""
        return self._source() if self._source is not None else -1

    _source_rank = source_rank

    def get_future(self):
        """A Future of the tensors. It is done when somebody waits for it or asks."""
        future = WorkFuture(self)
        if self._done:
            future.set_result(self._result)
        else:
            self._futures.append(future)
        return future

    def boxed(self):
        """Itself: there is one kind of object here."""
        return self

    def unbox(self):
        """Itself: there is one kind of object here."""
        return self


class WorkFuture(futures.Future):
    """A Future whose value is brought by a Work when somebody asks for it."""

    def __init__(self, work):
        super().__init__()
        self._work = work

    def then(self, callback):
        result = super().then(callback)
        result.__class__, result._work = WorkFuture, self._work  # whoever waits for it moves the exchange, too
        return result

    def done(self):
        self._work.is_completed()
        return super().done()

    def wait(self):
        self._work.wait()
        return super().wait()

    def value(self):
        self._work.wait()
        return super().value()


Work.__module__ = "torch.distributed"
