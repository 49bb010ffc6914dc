"""HTTP as the front speaks it: uvicorn's protocol, which waits only so long for the head of a request, and sends an
answer's head and body together.
"""

# Note [An answer is sent at once]
# Uvicorn writes the head of an answer, then the body. On a connection that sends small packets at once, these are two
# calls of the kernel and two packets, and each of them wakes the client: for the digits CNN a fifth of the front's time
# and a third of the client's. A head is held until what follows it comes, or until it is clear that nothing does.


class JoiningTransport:
    """A transport on which the head of an answer goes out together with what follows it."""

    def __init__(self, transport):
        self.transport, self.head = transport, None

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


def patient_protocol(seconds):
    """Uvicorn's HTTP protocol with a JoiningTransport, which closes a connection whose next request has begun, or whose
    first has not, for too long: a client that sends the head letter by letter would hold its connection for ever.
    (Between requests it closes connections by itself, and bodies have their own limit.)
    """
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

    class PatientProtocol(AutoHTTPProtocol):
        waiting = None

        def connection_made(self, transport):
            super().connection_made(JoiningTransport(transport))
            self.waiting = self.loop.call_later(seconds, transport.close)

        def data_received(self, data):
            super().data_received(data)
            incomplete = self.cycle is None or self.cycle.response_complete
            if not incomplete and self.waiting is not None:
                self.waiting.cancel()
                self.waiting = None
            elif incomplete and self.waiting is None:
                self.waiting = self.loop.call_later(seconds, self.transport.close)

        def on_response_complete(self):
            self.transport.flush()
            super().on_response_complete()

        def connection_lost(self, error):
            if self.waiting is not None:
                self.waiting.cancel()
                self.waiting = None
            super().connection_lost(error)

    return PatientProtocol
