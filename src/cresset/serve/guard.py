"""Who may ask: the token, and browsers that are sent here by pages of others.

Without a token only this machine's own programs can reach the server. A browser on it is such a program, and shows
pages from anywhere: so the name in `Host` has to be this machine's (else a foreign name could be made to point here),
and a request that a foreign page makes (`Origin`) is refused.
"""

import base64
import binascii
import functools
import hmac

from .settings import is_local

OPEN = ("/v2/health/live", "/v2/health/ready", "/ping")  # for those who watch over processes; they tell nothing else


def host_name(value):
    """The name in a Host or Origin header, without scheme and port.

    >>> host_name("http://localhost:8080"), host_name("[::1]:80")
    ('localhost', '[::1]')
    """
    name = value.rpartition("://")[2].partition("/")[0]
    return name[: name.index("]") + 1] if name.startswith("[") and "]" in name else name.partition(":")[0]


@functools.lru_cache(64)  # every request of a client has the same
def names_this_machine(value):
    return is_local(host_name(value.decode("latin-1")))


class Guard:
    """The outermost layer: passes a request on or answers 401 or 403."""

    def __init__(self, application, settings):
        self.application, self.settings = application, settings
        self.token = settings.token.encode() if settings.token else None

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            return await self.application(scope, receive, send)
        headers = dict(scope["headers"])
        problem = self.wrong(scope["path"], headers)
        if problem is None:
            return await self.application(scope, receive, send)
        status, words = problem
        body = b'{"error":"' + words + b'"}'
        found = [(b"content-type", b"application/json"), (b"connection", b"close")]
        found.append((b"content-length", str(len(body)).encode()))
        if status == 401:
            found.append((b"www-authenticate", b'Basic realm="cresset serve: any name, the token as the password"'))
        await send({"type": "http.response.start", "status": status, "headers": found})
        await send({"type": "http.response.body", "body": body})

    def straight(self, path, headers):
        """(Inference, name, version) if the request is one to a model and welcome, else None."""
        found = self.application.straight(path)
        return None if found is None or self.wrong(path, dict(headers)) is not None else found

    def wrong(self, path, headers):
        """(status, why) if the request is not welcome."""
        if path in OPEN:
            return None
        if self.token is not None:
            return None if self.shows_token(headers.get(b"authorization", b"")) else (401, b"a token is needed")
        if not names_this_machine(headers.get(b"host", b"")):
            return 403, b"Host is not a name of this machine"
        origin = headers.get(b"origin")
        if origin is not None and not names_this_machine(origin):
            return 403, b"requests from pages of other sites are refused"
        if headers.get(b"sec-fetch-site", b"none") not in (b"none", b"same-origin"):
            return 403, b"requests from pages of other sites are refused"
        return None

    def shows_token(self, value):
        kind, _, rest = value.partition(b" ")
        shown = rest.strip()
        if kind.lower() == b"basic":
            try:
                shown = base64.b64decode(shown, validate=True).partition(b":")[2]
            except binascii.Error:
                return False
        elif kind.lower() != b"bearer":
            return False
        return hmac.compare_digest(shown, self.token)
