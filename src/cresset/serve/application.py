"""The front: routes, and the way of a request to its model's queue and back."""

import asyncio
import contextlib
import functools
import itertools
import json
import re
import time

import cresset

from . import management, pages
from .guard import Guard
from .logs import log
from .metrics import prometheus
from .problems import Refused
from .reading import uncompressed

PLAIN_PATH = re.compile(rb"[\w/.@:-]+", re.ASCII)  # nothing escaped, no query
A_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9a-z-]+")  # of a header
NOT_A_VALUE = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
FRAMING = (b"content-length", b"transfer-encoding")  # where an answer ends is ours to say


async def read_body(scope, receive, settings):
    """The body of a request, within the limits of size and time."""
    limit = settings.max_bytes
    for name, value in scope["headers"]:
        if name == b"content-length" and int(value) > limit:  # the HTTP parser has checked that it is a number
            raise Refused(413, f"the body has {int(value)} bytes; at most {limit} are read", [["connection", "close"]])
    message = await receive()
    if not message.get("more_body"):
        body = message.get("body", b"")
    else:
        body = await rest_of_body(message["body"], receive, limit)
    return body


async def rest_of_body(start, receive, limit):
    parts, size = [start], len(start)
    try:
        async with asyncio.timeout(30):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise Refused(400, "the client went away")
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > limit or not message.get("more_body"):
                    return b"".join(parts)
    except TimeoutError:
        raise Refused(408, "the body did not arrive within 30 s", [["connection", "close"]]) from None


async def respond(send, status, kind, headers, body):
    found = [(b"content-type", kind), (b"content-length", str(len(body)).encode()), *headers]
    await send({"type": "http.response.start", "status": status, "headers": found})
    await send({"type": "http.response.body", "body": body})


class Application:
    """The way of a request: `inferences` are asked straight, which has to be short; the rest goes through the layers
    and the routes of a framework, which take longer than a small model.
    """

    def __init__(self, inferences, others):
        self.inferences, self.others = inferences, others
        self.straight = functools.lru_cache(256)(self.straight)

    def straight(self, path):
        """(Inference, name, version) if the path, as it was sent, is an inference's without further ado; else None."""
        for inference in self.inferences if PLAIN_PATH.fullmatch(path) else ():
            if found := inference.path.fullmatch(path.decode()):
                return inference, *found.groups()
        return None

    async def __call__(self, scope, receive, send):
        if scope["type"] == "http":
            for inference in self.inferences:
                if found := inference.path.fullmatch(scope["path"]):
                    return await inference(*found.groups(), scope, receive, send)
        await self.others(scope, receive, send)


class Inference:
    """`infer` of the Open Inference Protocol and TorchServe's `predictions`."""

    def __init__(self, registry, settings, kind, path, methods):
        self.registry, self.settings, self.kind = registry, settings, kind
        self.path, self.methods = re.compile(path), methods
        self.numbers = itertools.count(1)

    async def __call__(self, name, version, scope, receive, send):
        start, pool = time.perf_counter(), None
        try:
            if scope["method"] not in self.methods:
                raise Refused(405, f"{scope['method']} is not a way to ask", [["allow", ", ".join(self.methods)]])
            pool = self.pool(name, version)
            body = await read_body(scope, receive, self.settings)
            answer = await self.submit(pool, scope["headers"], body)
        except Refused as problem:
            answer = self.refusal(problem)
        await respond(send, *self.counted(scope["path"], pool, start, answer))

    def pool(self, name, version):
        model = self.registry.model(name)
        return model.choose() if version is None else self.registry.pool(model.name, version)

    def submit(self, pool, headers, body):
        """The future of the answer."""
        if len(body) > self.settings.max_bytes:
            raise Refused(413, f"the body has more than {self.settings.max_bytes} bytes", [["connection", "close"]])
        return pool.submit(*self.described(headers, body, pool))

    def refusal(self, problem):
        return problem.status, "application/json", problem.headers, self.error_text(problem)

    def counted(self, path, pool, start, answer):
        """(status, content type, headers, body) as bytes; the answer is counted, and logged if need be."""
        status, kind, headers, body = answer
        if headers or kind != "application/json" or status != 200:
            status, kind, headers, body = self.sendable(status, kind, headers, body)
        else:
            kind = b"application/json"
        if pool is not None:
            pool.measures.latency.add(time.perf_counter() - start)
            pool.measures.statuses[status] += 1
        if self.settings.log_requests or status >= 500:
            log("request", path=path, status=status, milliseconds=round((time.perf_counter() - start) * 1e3, 3))
        return status, kind, headers, body

    def sendable(self, status, kind, headers, body):
        """A handler decides about status, type and headers: what HTTP does not have becomes 500."""
        found = [
            (name.lower().encode("latin-1", "replace"), value.encode("latin-1", "replace")) for name, value in headers
        ]
        kind = kind.encode("latin-1", "replace")
        if not 200 <= status <= 599 or any(map(NOT_A_VALUE.search, (kind, *(value for _, value in found)))):
            wrong = True
        else:
            wrong = any(name in FRAMING or not A_NAME.fullmatch(name) for name, _ in found)
        if wrong:
            problem = Refused(500, "the model's answer has a status or a header that cannot be sent")
            return 500, b"application/json", [], self.error_text(problem)
        return status, kind, found, b"" if status in (204, 304) else body  # these have none

    def described(self, headers, body, pool):
        """What the worker has to know about the request, and its body."""
        kind, json_length, content_type, encoding, identity = self.kind, None, "", "", None
        for name, value in headers:
            if name == b"inference-header-content-length":
                json_length = value
            elif name == b"content-type":
                content_type = value.decode("latin-1")
            elif name == b"content-encoding":
                encoding = value.decode("latin-1").strip().lower()
            elif name == b"x-request-id":
                identity = value.decode("latin-1")[:200]
        if json_length is not None:
            if not json_length.isdigit() or len(json_length) > 15:
                raise Refused(400, "Inference-Header-Content-Length should be a number")
            json_length = int(json_length)
        if encoding:
            body = uncompressed(body, encoding, self.settings.max_bytes)
        passed = None
        if pool.metadata.get("platform") == "cresset_handler":
            passed = [[n.decode("latin-1"), v.decode("latin-1")] for n, v in headers if n != b"authorization"]
        return [kind, json_length, content_type, identity or str(next(self.numbers)), passed], body

    def error_text(self, problem):
        return error_text(problem, self.kind == "predict")


def error_text(problem, torchserve):
    if torchserve:
        value = {"code": problem.status, "type": management.error_type(problem.status), "message": problem.message}
    else:
        value = {"error": problem.message}
    return json.dumps(value).encode()


def make_application(registry, settings):
    """The ASGI application of a registry's models."""
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.responses import PlainTextResponse, Response
    from starlette.routing import Route

    infer = Inference(registry, settings, "infer", r"/v2/models/([^/]+)(?:/versions/([^/]+))?/infer/?", ("POST",))
    predict = Inference(
        registry, settings, "predict", r"/predictions/([^/]+)(?:/([^/]+))?/?", ("POST", "GET", "HEAD", "PUT")
    )

    def answering(function, torchserve=False):
        """An endpoint from a function of (registry, request) that returns JSON's values, or refuses."""

        async def endpoint(request):
            status, headers = 200, {}
            try:
                value = await function(registry, request)
                if isinstance(value, Response):
                    return value
                if isinstance(value, tuple):
                    status, value = value
                body = json.dumps(value).encode()
            except Refused as problem:
                status, body, headers = problem.status, error_text(problem, torchserve), dict(problem.headers)
            return Response(body, status, headers, "application/json")

        return endpoint

    def managed(path, method, function):
        return Route(path, answering(function, torchserve=True), methods=[method])

    async def metrics(request):
        return PlainTextResponse(prometheus(registry.pools()), media_type="text/plain; version=0.0.4")

    @contextlib.asynccontextmanager
    async def lifespan(_):
        yield
        log("stopping")
        await registry.stop()
        log("stopped")

    routes = [
        Route("/v2", answering(server_metadata)),
        Route("/v2/health/live", answering(live)),
        Route("/v2/health/ready", answering(ready)),
        Route("/v2/models/{name}", answering(model_metadata)),
        Route("/v2/models/{name}/versions/{version}", answering(model_metadata)),
        Route("/v2/models/{name}/ready", answering(model_ready)),
        Route("/v2/models/{name}/versions/{version}/ready", answering(model_ready)),
        Route("/v2/repository/index", answering(management.repository_index), methods=["POST"]),
        Route("/v2/repository/models/{name}/load", answering(management.repository_load), methods=["POST"]),
        Route("/v2/repository/models/{name}/unload", answering(management.repository_unload), methods=["POST"]),
        Route("/ping", answering(ping)),
        Route("/metrics", metrics),
        managed("/models", "GET", management.list_models),
        managed("/models", "POST", management.register),
        managed("/models/{name}", "GET", management.describe),
        managed("/models/{name}", "PUT", management.scale),
        managed("/models/{name}", "DELETE", management.unregister),
        managed("/models/{name}/split", "PUT", management.split),
        managed("/models/{name}/{version}", "GET", management.describe),
        managed("/models/{name}/{version}", "PUT", management.scale),
        managed("/models/{name}/{version}", "DELETE", management.unregister),
        managed("/models/{name}/{version}/set-default", "PUT", management.set_default),
        *pages.routes(registry),
    ]
    others = Starlette(routes=routes, lifespan=lifespan, exception_handlers={HTTPException: no_route})
    return Guard(Application([infer, predict], others), settings)


async def no_route(request, error):
    """Clients of both languages expect JSON, also where there is nothing."""
    from starlette.responses import Response

    words = f"there is nothing at {request.method} {request.url.path[:200]}; /docs tells what there is"
    body = json.dumps({"error": words}).encode()
    return Response(body, error.status_code, error.headers, "application/json")


async def server_metadata(_registry, _request):
    extensions = ["binary_tensor_data", "model_repository"]
    return {"name": "cresset", "version": cresset.version.__version__, "extensions": extensions}


async def live(_registry, _request):
    return {"live": True}


async def ready(registry, _request):
    return {"ready": True} if registry.is_ready() else (503, {"ready": False})


async def ping(registry, _request):
    return {"status": "Healthy"} if registry.is_ready() else (503, {"status": "Unhealthy"})


async def model_metadata(registry, request):
    name = request.path_params["name"]
    pool = registry.pool(name, request.path_params.get("version"))
    return {
        "name": name,
        "versions": list(registry.model(name).versions),
        "platform": pool.metadata.get("platform", ""),
        "inputs": pool.metadata.get("inputs", []),
        "outputs": pool.metadata.get("outputs", []),
    }


async def model_ready(registry, request):
    name = request.path_params["name"]
    pool = registry.pool(name, request.path_params.get("version"))
    answer = {"name": name, "ready": pool.ready_workers > 0}
    return answer if answer["ready"] else (503, answer)
