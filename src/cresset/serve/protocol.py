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
"""

import functools
import time
from http import HTTPStatus

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from .problems import Refused

# Note [The last request of a connection]
# When the server stops, requests may be on their way on connections that seem idle, and would be lost.
# Such a connection stays open for so many seconds, and what comes in them is answered as its last request.
LINGER = 0.2


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


@functools.lru_cache(1024)
def status_line(status):
    phrases = {known.value: known.phrase for known in HTTPStatus}
    return f"HTTP/1.1 {status} {phrases.get(status, '')}\r\n".encode()


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
        if self.disconnected:
            return
        protocol, lines = self.protocol, []
        for name, value in (*protocol.server_state.default_headers, (b"content-type", kind), *headers):
            if name == b"connection":
                self.keep_alive = False
            lines += (name, b": ", value, b"\r\n")
        end = b"content-length: %d\r\n\r\n" if self.keep_alive else b"connection: close\r\ncontent-length: %d\r\n\r\n"
        protocol.transport.transport.write(b"".join((status_line(status), *lines, end % len(body), body)))
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
    straight = parts = None  # a request that may go the short way, until it is all there: to whom, and its body

    def connection_made(self, transport):
        super().connection_made(JoiningTransport(transport))
        self.waiting = self.loop.call_later(self.patience, transport.close)

    def data_received(self, data):
        super().data_received(data)
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
        if self.is_idle():
            self.transport.close()

    # ---- what the parser finds

    def on_message_begin(self):
        self.url, self.headers, self.expect_100_continue = b"", [], False

    def on_headers_complete(self):
        if (
            self.is_idle()
            and not self.flow.write_paused
            and len(self.connections) < self.limit_concurrency
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
        if self.straight is None:
            super().on_message_complete()
            return
        inference, name, version = self.straight
        body, self.straight, self.parts = b"".join(self.parts), None, None
        keep_alive = self.parser.get_http_version() != "1.0" and self.parser.should_keep_alive()
        self.cycle = Exchange(self, inference, keep_alive and not self.ending)
        self.cycle.ask(name, version, self.headers, body)

    def on_response_complete(self):
        self.transport.flush()
        super().on_response_complete()
