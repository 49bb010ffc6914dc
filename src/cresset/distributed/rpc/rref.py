"""References to values in other processes."""

import itertools

from ...futures import Future
from . import names

_numbers = itertools.count()


def _agent():
    from .api import _current_agent

    return _current_agent()


class RRef:
    """A reference to a value of a worker, its owner. `remote` makes one of what a function gives there; RRef(value)
    makes one of a value here. The value lives as long as the reference that made it; if that was sent on, until
    `shutdown`.

    Args:
        value: what it refers to.
        type_hint: PyTorch's, for TorchScript.
    """

    def __init__(self, value, type_hint=None):
        agent = _agent()
        self._owner, self._key, self._maker, self._shared = agent.info.name, _key(agent), agent, False
        self._ready = None
        agent.values[self._key] = value

    @classmethod
    def _of(cls, owner, key, ready, maker):
        self = cls.__new__(cls)
        self._owner, self._key, self._ready, self._maker, self._shared = owner, key, ready, maker, False
        return self

    @classmethod
    def _received(cls, owner, key):
        return cls._of(owner, key, None, None)

    def _sent(self):
        """What another process needs to know; the value stays."""
        self._wait()
        self._shared = True
        return self._owner, self._key

    def _wait(self):
        if self._ready is not None:
            self._ready.wait()

    def __del__(self):
        agent = getattr(self, "_maker", None)
        if agent is None or self._shared or not agent.open:
            return
        if self._owner == agent.info.name:
            agent.values.pop(self._key, None)
        else:
            try:
                agent.ask(agent.worker(self._owner), b"forget", "", names.to_bytes(self._key, "RRef"), 0)
            except (OSError, RuntimeError):
                return  # the process ends, or the owner did

    def owner(self):
        """The worker that has the value."""
        return _agent().worker(self._owner)

    def owner_name(self):
        """Its name."""
        return self._owner

    def is_owner(self):
        """Whether that is this process."""
        return self._owner == _agent().info.name

    def confirmed_by_owner(self):
        """Whether the value is there."""
        return self._ready is None or self._ready.done()

    def to_here(self, timeout=-1.0):
        """A copy of the value, brought here."""
        agent = _agent()
        self._wait()
        if self.is_owner():
            return agent.values[self._key]
        data = names.to_bytes(self._key, "RRef")
        return names.from_bytes(agent.ask(self.owner(), b"fetch", "", data, timeout).wait())

    def local_value(self):
        """The value itself, in its owner."""
        self._wait()
        if not self.is_owner():
            raise RuntimeError(
                f"Cannot call localValue() on a non-local reference: {self!r} is owned by {self._owner}, and this is "
                f"{_agent().info.name}. Call toHere()."
            )
        return _agent().values[self._key]

    def _get_future(self):
        if self._ready is None:
            done = Future()
            done.set_result(None)
            return done
        return self._ready

    def rpc_sync(self, timeout=-1.0):
        """What calls the value's methods in its owner, and waits for the results."""
        return _Methods(self, "sync", timeout)

    def rpc_async(self, timeout=-1.0):
        """What calls the value's methods in its owner, and gives Futures."""
        return _Methods(self, "async", timeout)

    def remote(self, timeout=-1.0):
        """What calls the value's methods in its owner, and gives RRefs of the results, which stay there."""
        return _Methods(self, "remote", timeout)

    def __repr__(self):
        kind = "OwnerRRef" if self._owner == _agent().info.name else "UserRRef"
        return f"{kind}(RRefId = {self._key}, owner = {self._owner})"


class _Methods:
    """The methods of a value in another process."""

    def __init__(self, reference, way, timeout):
        self._reference, self._way, self._timeout = reference, way, timeout

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)

        def call(*args, **kwargs):
            agent, reference = _agent(), self._reference
            reference._wait()
            stays = _key(agent) if self._way == "remote" else None
            data = names.to_bytes([reference._key, list(args), kwargs, stays], f"RRef.{name}")
            answer = agent.ask(reference.owner(), b"method", name, data, self._timeout)
            if stays is not None:
                return RRef._of(reference._owner, stays, answer, agent)
            future = answer._followed(lambda done: names.from_bytes(done.value()))
            return future.wait() if self._way == "sync" else future

        return call


def _key(agent):
    return f"{agent.rank}.{next(_numbers)}"
