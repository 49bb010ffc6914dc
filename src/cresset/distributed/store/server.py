"""Who answers the requests to a TCPStore, apart from the sockets that they come by.

A member of a job keeps one connection open on which it says who it is ("member") and, again and again, that it lives
and what it does ("alive"). When such a connection ends without "leave", or is silent for too long, the member is gone,
and all members of its job are told at once on theirs: none of them has to ask. When many go, one after the other, the
later ones are told with the answer to the next sign of life: else the end of a job of thousands were millions of
messages.
"""

import heapq
import itertools
from collections import OrderedDict

from . import wire
from .table import Later, Table

SILENCE = 3.0  # seconds without a sign of life
LOOK = 1.0  # seconds in which the clock is looked at, while there are members
AT_ONCE = 8  # members of a job whose end is told at once
ECHO = wire.pack([b""])


class Peer:
    """A connection: what came in, what has to go out, and a request that waits."""

    def __init__(self, connection):
        self.connection, self.received, self.to_send = connection, bytearray(), bytearray()
        self.waiting = None  # (operation, keys, values, state, number)
        self.awaited = None  # the key that has to change first
        self.scope = self.member = self.host = None
        self.seen, self.note, self.told = 0.0, "", 0  # how many losses of its job it knows of
        self.left = False  # it has said goodbye: nothing more comes

    def where(self):
        """In which call a member was when it last gave a sign of life, in words."""
        return f"; its last sign of life came from {self.note}" if self.note else ""


class Server:
    """A table, those who are connected, and what they wait for.

    Args:
        now: the clock.
        flush: flush(peer) sends what the peer has in `to_send`, now or when it can.
    """

    def __init__(self, now, flush):
        self.now, self.flush, self.table, self.peers = now, flush, Table(), {}
        self.waits = {}  # key -> {peers that wait for it}
        self.deadlines, self.numbers = [], itertools.count()
        self.members = OrderedDict()  # peers that are members, the one that was silent longest first
        self.lost = {}  # scope -> [(name, how)], of those that are gone
        self.messages = {}  # scope -> what tells of each of them
        self.users = 0  # TCPStores that came
        self.looked = now()

    # ---- connections

    def connected(self, connection):
        """Somebody comes; the Peer."""
        peer = self.peers[connection] = Peer(connection)
        return peer

    def received(self, peer, data):
        """Bytes came; ValueError if they are no requests."""
        peer.received += data
        while (message := wire.take(peer.received)) is not None:
            self.request(peer, message)

    def drop(self, peer):
        """A connection has ended."""
        if self.peers.pop(peer.connection, None) is None:
            return
        self.forget(peer)
        if peer.member:
            self.gone(peer, "ended")

    # ---- time

    def patience(self):
        """Seconds until something has to happen by itself, or None."""
        while self.deadlines and not self.is_waiting(self.deadlines[0]):
            heapq.heappop(self.deadlines)
        times = [self.deadlines[0][0]] if self.deadlines else []
        if self.members:
            times += [next(iter(self.members)).seen + SILENCE, self.now() + LOOK]
        return max(0.0, min(times) - self.now()) if times else None

    @staticmethod
    def is_waiting(entry):
        _, number, peer = entry
        return peer.waiting is not None and peer.waiting[4] == number

    def look_at_the_clock(self):
        now = self.now()
        if (
            self.members and now - self.looked > 2 * LOOK
        ):  # this process was stopped: the signs of life are not read yet
            for peer in self.members:
                peer.seen = now
        self.looked = now
        while self.deadlines and self.deadlines[0][0] <= now:
            entry = heapq.heappop(self.deadlines)
            if self.is_waiting(entry):
                peer = entry[2]
                operation, keys = peer.waiting[:2]
                self.forget(peer)
                self.answer(peer, [b"late", operation.encode(), *keys])
        while self.members:
            peer = next(iter(self.members))
            if peer.seen + SILENCE > now:
                break
            self.gone(peer, f"gave no sign of life for {SILENCE:g} s")

    # ---- members

    def gone(self, peer, how):
        """Tell the others of its job that a member is gone."""
        self.members.pop(peer, None)
        scope, name, peer.member = peer.scope, peer.member, None
        text = f"on {peer.host} {how}{peer.where()}".encode()
        lost = self.lost.setdefault(scope, [])
        lost.append((name, text))
        self.messages.setdefault(scope, []).append(wire.pack([b"gone", name, text]))
        if len(lost) <= AT_ONCE:
            for other in list(self.members):
                if other.scope == scope:
                    self.tell(other)

    def tell(self, peer):
        """Tell a member who is gone, of those that it does not know of."""
        messages = self.messages.get(peer.scope, ())
        if peer.told < len(messages):
            peer.to_send += b"".join(messages[peer.told :])
            peer.told = len(messages)
        self.flush(peer)

    def _member(self, peer, keys, values):
        peer.scope, peer.member = keys
        peer.host, peer.seen = values[0].decode(errors="replace"), self.now()
        self.members[peer] = None
        peer.to_send += wire.pack([b"done"])
        self.tell(peer)

    def _alive(self, peer, keys, values):
        if peer.member:
            peer.seen = self.now()
            self.members.move_to_end(peer)
            peer.note = values[0].decode(errors="replace") if values else ""
        peer.to_send += ECHO
        self.tell(peer)

    def _leave(self, peer, keys, values):
        self.members.pop(peer, None)
        if peer.member and values and values[0]:
            self.gone(peer, values[0].decode(errors="replace"))
        peer.member, peer.left = None, True

    def _whereabouts(self, peer, keys, values):
        pairs = [(m.member, f"on {m.host}{m.where()}".encode()) for m in self.members if m.scope == keys[0]]
        pairs += self.lost.get(keys[0], ())
        self.answer(peer, [b"done", *(field for pair in pairs for field in pair)])

    def _user(self, peer, keys, values):
        self.users += 1
        self.table.values[b"cresset/users"] = str(self.users).encode()
        self.answer(peer, [b"done"])
        self.changed([b"cresset/users"])

    # ---- requests

    def request(self, peer, message):
        if len(message) < 3:
            raise ValueError("a request without its parts")
        operation, timeout, count, *rest = message
        operation, count = operation.decode("ascii"), int(count)
        keys, values = rest[:count], rest[count:]
        if operation in ("member", "alive", "leave", "user", "whereabouts"):
            if len(keys) != {"member": 2, "whereabouts": 1}.get(operation, 0) or (operation == "member" and not values):
                raise ValueError(f"{operation} without its names")
            return getattr(self, f"_{operation}")(peer, keys, values)
        if operation not in Table.OPERATIONS or (
            not keys and operation not in ("count", "list", "get", "wait", "check", "each", "set")
        ):
            raise ValueError(f"no request {operation!r}")
        number = next(self.numbers)
        peer.waiting = (operation, keys, values, {}, number)
        if self.try_again(peer):
            self.changed(keys)
        if peer.waiting is not None:
            heapq.heappush(self.deadlines, (self.now() + float(timeout), number, peer))
        return None

    def try_again(self, peer):
        """Whether a request was answered and has changed the table."""
        operation, keys, values, state, _ = peer.waiting
        try:
            answer = [b"done", *self.table.answer(operation, keys, values, state)]
        except Later as later:
            peer.awaited = later.key
            self.waits.setdefault(later.key, {})[peer] = None
            return False
        except (ValueError, IndexError) as error:
            answer = [b"wrong", str(error).encode()]
        self.forget(peer)
        self.answer(peer, answer)
        return operation not in ("get", "wait", "check", "each", "count", "list", "length")

    def changed(self, keys):
        """Ask again for those who wait for these keys."""
        for key in keys:
            for peer in self.waits.pop(key, ()):
                if peer.waiting is not None:
                    self.try_again(peer)

    def forget(self, peer):
        """A request waits no more."""
        peer.waiting = None
        others = self.waits.get(peer.awaited)
        if others is not None:
            others.pop(peer, None)
            if not others:
                del self.waits[peer.awaited]

    def answer(self, peer, fields):
        peer.to_send += wire.pack(fields)
        self.flush(peer)
