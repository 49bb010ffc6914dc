"""How long the front waits for the head of a request: a client that sends it letter by letter would hold its connection
for ever.
"""


def patient_protocol(seconds):
    """Uvicorn's HTTP protocol, which closes a connection whose next request has begun, or whose first has not, for too
    long. (Between requests it closes connections by itself, and bodies have their own limit.)
    """
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

    class PatientProtocol(AutoHTTPProtocol):
        waiting = None

        def connection_made(self, transport):
            super().connection_made(transport)
            self.waiting = self.loop.call_later(seconds, transport.close)

        def data_received(self, data):
            super().data_received(data)
            incomplete = self.cycle is None or self.cycle.response_complete
            if not incomplete and self.waiting is not None:
                self.waiting.cancel()
                self.waiting = None
            elif incomplete and self.waiting is None:
                self.waiting = self.loop.call_later(seconds, self.transport.close)

        def connection_lost(self, error):
            if self.waiting is not None:
                self.waiting.cancel()
                self.waiting = None
            super().connection_lost(error)

    return PatientProtocol
