"""`torch.torch_version`: a version as text that compares by its numbers."""

import re

from .version import __version__ as _plain

__all__ = ["TorchVersion"]


class TorchVersion(str):
    """A version that compares with text, numbers and tuples by its parts: "2.10" is after "2.9".

    >>> cresset.torch_version.TorchVersion("2.10.0") > "2.9"
    True
    >>> cresset.torch_version.TorchVersion("2.10.0") >= (2, 10)
    True
    """

    def _key(self, other):
        """(release numbers without trailing zeros, is it a release and not a pre-release, its pre-release numbers)."""
        text = ".".join(map(str, other)) if isinstance(other, (tuple, list)) else str(other)
        match = re.match(r"\s*v?(\d+(?:\.\d+)*)(.*)$", text)
        if match is None:
            return None
        numbers = [int(part) for part in match[1].split(".")]
        while len(numbers) > 1 and numbers[-1] == 0:
            numbers.pop()
        before = re.match(r"[-_.]?(a|b|c|rc|alpha|beta|pre|preview|dev)[-_.]?(\d*)", match[2])
        stage = {"dev": 0, "a": 1, "alpha": 1, "b": 2, "beta": 2}.get(before[1], 3) if before else 4
        return numbers, stage, int(before[2] or 0) if before else 0

    def _compare(self, other, by_key, by_text):
        ours, theirs = self._key(self), self._key(other)
        return by_text(str(self), str(other)) if theirs is None or ours is None else by_key(ours, theirs)

    def __eq__(self, other):
        return self._compare(other, lambda a, b: a == b, str.__eq__)

    def __ne__(self, other):
        return not self == other

    def __lt__(self, other):
        return self._compare(other, lambda a, b: a < b, str.__lt__)

    def __le__(self, other):
        return self._compare(other, lambda a, b: a <= b, str.__le__)

    def __gt__(self, other):
        return self._compare(other, lambda a, b: a > b, str.__gt__)

    def __ge__(self, other):
        return self._compare(other, lambda a, b: a >= b, str.__ge__)

    __hash__ = str.__hash__


__version__ = TorchVersion(_plain)
