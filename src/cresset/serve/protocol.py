"""HTTP as the front speaks it: uvicorn's protocol, with patience for the head of a request, an answer's head and body
in one write, and a short way for requests to models.

Note [An answer is sent at once]
Uvicorn writes the head of an answer, then the body. On a connection that sends small packets at once, these are two
calls of the kernel and two packets, and each of them wakes the client. A head is held until what follows it comes, or
until it is clear that nothing does.

Note [The short way]
A request to a model that is all there when it is read goes straight to the model's queue, and its answer straight to
the connection: an Exchange instead of uvicorn's cycle, without a task. All else goes the way of ASGI: requests that
come in pieces or behind others, that the guard refuses, that are written in an unusual way. Both ways ask the same
guard and the same Inference.

Note [A head that was seen before]
Clients send the same head again and again. What parser and guard found in the head of a request that went the short way
depends on its bytes alone, so it is kept by them: a request that begins with these bytes, and is as long as they say,
is not read anew. That is half of what the front does for a request.
"""

import functools
import select
import time
from http import HTTPStatus

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from .problems import Refused

# Note [The last request of a connection]
# When the server stops, requests may be on their way on connections that seem idle, and would be lost.
# Such a connection stays open for so many seconds, and what comes in them is answered as its last request.
LINGER = 0.2

# Note [A request that came while a connection was closed]
# An idle connection is closed after some seconds. On a busy machine the loop may come to its clock before it has read
# what arrived in time, and a request that is closed upon is lost: its client cannot know whether it was computed. So
# the connection is asked whether something has come.

KEPT, LONGEST = 1024, 4096  # heads that are kept, and bytes of each


class JoiningTransport:
    """A transport on which the head of an answer goes out together with what follows it."""

    def __init__(self, transport):
        self.transport, self.head = transport, None
        self.is_closing = transport.is_closing

    def __getattr__(self, name):
        return getattr(self.transport, name)

    def write(self, data):
        if self.head is not None:
            head, self.head = self.head, None
            self.transport.writelines((head, data))
        elif data.startswith(b"HTTP/1.1 ") and not data.startswith(b"HTTP/1.1 100"):
            self.head = data
        else:
            self.transport.write(data)

    def flush(self):
        """Send a head that nothing follows."""
        if self.head is not None:
            head, self.head = self.head, None
            self.transport.write(head)

    def close(self):
        self.flush()
        self.transport.close()


PHRASES = {known.value: known.phrase for known in HTTPStatus}


@functools.lru_cache(64)  # nearly all answers of a second have the same
def head_of_answer(status, headers, keep_alive):
    """The head of an answer but for the length of its body."""
    lines = [f"HTTP/1.1 {status} {PHRASES.get(status, '')}\r\n".encode()]
    lines += [b"%b: %b\r\n" % header for header in headers]
    lines.append(b"content-length: " if keep_alive else b"connection: close\r\ncontent-length: ")
    return b"".join(lines)


class Head:
    """What was found in the head of a request to a model (Note [A head that was seen before])."""

    __slots__ = ("headers", "length", "straight", "url")

    def __init__(self, url, headers, straight, length):
        self.url, self.headers, self.straight, self.length = url, headers, straight, length


class Exchange:
    """A request to a model on the short way; for uvicorn's protocol it is the connection's cycle."""

    __slots__ = ("disconnected", "inference", "keep_alive", "path", "pool", "protocol", "response_complete", "start")

    def __init__(self, protocol, inference, keep_alive):
        self.protocol, self.inference, self.keep_alive = protocol, inference, keep_alive
        self.path, self.pool, self.start = protocol.url, None, time.perf_counter()
        self.disconnected = self.response_complete = False

    @property
    def message_event(self):
        return self  # uvicorn sets it when the client is gone

    def set(self):
        pass

    def ask(self, name, version, headers, body):
        try:
            self.pool = self.inference.pool(name, version)
            self.inference.submit(self.pool, headers, body).add_done_callback(self.answered)
        except Refused as problem:
            self.protocol.loop.call_soon(self.answer, self.inference.refusal(problem))

    def answered(self, future):
        problem = future.exception()
        self.answer(future.result() if problem is None else self.inference.refusal(problem))

    def answer(self, answer):
        status, kind, headers, body = self.inference.counted(self.path.decode(), self.pool, self.start, answer)
        protocol, self.protocol = self.protocol, None  # which has this exchange: nothing refers to itself (garbage.py)
        if self.disconnected:
            return
        if any(name == b"connection" for name, _ in headers):
            self.keep_alive = False
        found = (*protocol.server_state.default_headers, (b"content-type", kind), *headers)
        head = head_of_answer(status, found, self.keep_alive)
        protocol.transport.transport.write(b"%b%d\r\n\r\n%b" % (head, len(body), body))
        self.response_complete = True
        if not self.keep_alive:
            protocol.transport.close()
        protocol.on_response_complete()


class FrontProtocol(HttpToolsProtocol):
    """Closes a connection whose next request has begun, or whose first has not, for `patience` seconds: a client that
    sends the head letter by letter would hold its connection for ever. (Between requests uvicorn closes connections by
    itself, and bodies have their own limit.)
    """

    patience = None
    waiting = None
    ending = False
    heads = None  # those that were seen before, of all connections of a server
    head = None  # the head of the request that is read now, if it may be kept
    behind = 0  # bytes that came with it
    begun = False  # whether the parser has begun with a request and not ended it
    straight = parts = None  # a request that may go the short way, until it is all there: to whom, and its body
    quiet_since = 0.0  # when the last answer was complete

    def connection_made(self, transport):
        super().connection_made(JoiningTransport(transport))
        self.waiting = self.loop.call_later(self.patience, transport.close)

    def data_received(self, data):
        if not self.begun and self.is_idle():
            end = data.find(b"\r\n\r\n") + 4
            self.head = data[:end]
            seen = self.heads.get(self.head)
            self.behind = len(data) - end
            if seen is not None and self.behind == seen.length and self.may_be_straight() and not self.ending:
                if self.waiting is not None:
                    self.waiting.cancel()
                    self.waiting = None
                self.ask(seen, data[end:], True)
                return
        super().data_received(data)
        self.head = None
        if self.straight is not None:
            self.go_the_long_way()
        incomplete = self.is_idle()
        if not incomplete and self.waiting is not None:
            self.waiting.cancel()
            self.waiting = None
        elif incomplete and self.waiting is None:
            self.waiting = self.loop.call_later(self.patience, self.transport.close)

    def connection_lost(self, error):
        if self.waiting is not None:
            self.waiting.cancel()
            self.waiting = None
        super().connection_lost(error)

    def is_idle(self):
        return self.cycle is None or self.cycle.response_complete

    def shutdown(self):
        self.ending = True  # Note [The last request of a connection]
        if self.is_idle():
            self.loop.call_later(LINGER, self.close_if_idle)
        else:
            super().shutdown()

    def close_if_idle(self):
        if self.is_idle() and not self.has_unread():
            self.transport.close()

    def has_unread(self):
        """Whether something is not read yet (Note [A request that came while a connection was closed])."""
        seen = select.poll()
        seen.register(self.transport.get_extra_info("socket").fileno(), select.POLLIN)
        return bool(seen.poll(0))

    # ---- what the parser finds

    def on_message_begin(self):
        self.begun = True
        self.url, self.headers, self.expect_100_continue = b"", [], False

    def may_be_straight(self):
        return self.is_idle() and not self.flow.write_paused and len(self.connections) < self.limit_concurrency

    def on_headers_complete(self):
        if (
            self.may_be_straight()
            and self.parser.get_method() == b"POST"
            and not self.parser.should_upgrade()
            and not self.expect_100_continue
            and (found := self.app.straight(self.url, self.headers)) is not None
        ):
            self.straight, self.parts = found, []
        else:
            self.on_headers_of_long_way()

    def on_headers_of_long_way(self):
        url, headers, expecting = self.url, self.headers, self.expect_100_continue
        super().on_message_begin()
        self.url, self.expect_100_continue = url, expecting
        self.headers += headers
        super().on_headers_complete()
        if self.ending:
            self.cycle.keep_alive = False

    def go_the_long_way(self):
        """What began as a request for the short way is not all there."""
        parts, self.straight, self.parts = self.parts, None, None
        if not self.transport.is_closing():
            self.on_headers_of_long_way()
            for part in parts:
                super().on_body(part)

    def on_body(self, body):
        if self.straight is None:
            super().on_body(body)
        else:
            self.parts.append(body)

    def on_message_complete(self):
        self.begun = False
        if self.straight is None:
            super().on_message_complete()
            return
        body = b"".join(self.parts)
        head = Head(self.url, self.headers, self.straight, len(body))
        self.straight = self.parts = None
        keep_alive = self.parser.get_http_version() != "1.0" and self.parser.should_keep_alive()
        if keep_alive and self.head and len(self.head) <= LONGEST and self.behind == len(body):
            if len(self.heads) >= KEPT:
                self.heads.clear()
            self.heads[self.head] = head
        self.ask(head, body, keep_alive and not self.ending)

    def ask(self, head, body, keep_alive):
        inference, name, version = head.straight
        self.url = head.url
        self.cycle = Exchange(self, inference, keep_alive)
        self.cycle.ask(name, version, head.headers, body)

    def on_response_complete(self):
        self.transport.flush()
        if self.pipeline:
            super().on_response_complete()
            return
        self.server_state.total_requests += 1
        if not self.transport.is_closing():
            self.flow.resume_reading()
            # A timer for each answer costs more than one that looks, when it is due, whether it should be later.
            self.quiet_since = self.loop.time()
            if self.timeout_keep_alive_task is None:
                self.watch(self.timeout_keep_alive)

    def watch(self, seconds):
        self.timeout_keep_alive_task = self.loop.call_later(seconds, self.timeout_keep_alive_handler)

    def timeout_keep_alive_handler(self):
        self.timeout_keep_alive_task = None
        left = self.quiet_since + self.timeout_keep_alive - self.loop.time()
        if self.is_idle() and (left > 0 or self.has_unread()):
            self.watch(max(left, LINGER))
        elif self.is_idle():
            super().timeout_keep_alive_handler()
