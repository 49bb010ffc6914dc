"""TorchServe's handler classes: initialize, preprocess, inference, postprocess, or a `handle` of their own.

A handler is given the requests of a batch as a list and gives a list of answers of the same length.
"""

import math
import os
import time
import traceback

import cresset

from . import open_inference, predictions
from .problems import Refused, is_memory


class Metrics:
    """Numbers that a handler reports, as TorchServe's `context.metrics`; the front adds them up. One that is not finite
    is left out: with it, the sum would be lost."""

    def __init__(self):
        self.found = {}

    def _add(self, name, value):
        if math.isfinite(value):
            self.found[str(name)] = self.found.get(str(name), 0.0) + float(value)

    def add_counter(self, name, value, idx=None, dimensions=None):
        self._add(name, value)

    def add_time(self, name, value, idx=None, unit="ms", dimensions=None):
        self._add(name, value)

    def add_size(self, name, value, idx=None, unit="MB", dimensions=None):
        self._add(name, value)

    def add_percent(self, name, value, idx=None, dimensions=None):
        self._add(name, value)

    def add_metric(self, name, value, unit=None, idx=None, dimensions=None):
        self._add(name, value)


class Context:
    """What a handler may know about its model and its requests, and say about its answers."""

    def __init__(self, settings, device):
        folder = os.path.dirname(os.path.abspath(settings.source.rpartition(":")[0]))
        self.model_name = settings.name
        self.manifest = {
            "model": {"modelName": settings.name, "modelVersion": settings.version, "handler": settings.source}
        }
        self.system_properties = {
            "model_dir": folder, "gpu_id": device.index, "batch_size": settings.batch, "server_name": "cresset",
            "server_version": cresset.version.__version__, "limit_max_image_pixels": True,
        }  # fmt: skip
        self.model_yaml_config, self.metrics = {}, Metrics()
        self.requests, self.replies = [], []

    def begin(self, requests):
        self.requests = requests
        self.replies = [{"status": 200, "type": None, "headers": []} for _ in requests]

    def get_request_id(self, idx=0):
        return self.requests[idx].identity

    def get_all_request_ids(self):
        return {at: request.identity for at, request in enumerate(self.requests)}

    def get_request_header(self, idx, key, exact=False):
        for name, value in self.requests[idx].headers:
            if (name == key) if exact else (name.lower() == key.lower()):
                return value
        return None

    def get_all_request_header(self, idx):
        return dict(self.requests[idx].headers)

    def set_response_content_type(self, idx, value):
        self.replies[idx]["type"] = str(value)

    def get_response_content_type(self, idx):
        return self.replies[idx]["type"]

    def set_response_header(self, idx, key, value):
        self.replies[idx]["headers"].append([str(key), str(value)])

    def set_response_status(self, code=200, phrase="", idx=0):
        self.replies[idx]["status"] = int(code)

    def set_all_response_status(self, code=200, phrase=""):
        for reply in self.replies:
            reply["status"] = int(code)


class HandlerRunner:
    """Answers batches of requests with a handler."""

    def __init__(self, kind, settings, device):
        self.settings, self.bound = settings, settings.memory << 20
        self.context = Context(settings, device)
        self.handler = kind()
        if hasattr(self.handler, "initialize"):
            self.handler.initialize(self.context)

    def metadata(self):
        return {
            "platform": "cresset_handler",
            "inputs": self.settings.inputs or [],
            "outputs": self.settings.outputs or [],
            "joins": self.settings.batch > 1,
        }

    def handle(self, data):
        handler = self.handler
        if hasattr(handler, "handle"):
            return handler.handle(data, self.context)
        for step in ("preprocess", "inference", "postprocess"):
            if hasattr(handler, step):
                data = getattr(handler, step)(data)
        return data

    def answer(self, requests):
        """One (status, content type, headers, body) for each request, and the seconds the handler took."""
        answers, given = [None] * len(requests), []
        for at, request in enumerate(requests):
            try:
                given.append((at, request, *self.read(request)))
            except Refused as problem:
                answers[at] = (problem.status, None, problem.headers, problem.message)
        start = time.perf_counter()
        if given:
            self.run(given, answers)
        return answers, time.perf_counter() - start

    def read(self, request):
        """(the datum, the Question if it came by the Open Inference Protocol)."""
        if request.kind == "infer":
            question = open_inference.read_question(request.body, request.json_length, self.bound, strings=True)
            return {"body": question.inputs}, question
        return predictions.read_body(request.body, request.content_type, self.bound), None

    def run(self, given, answers):
        self.context.begin([request for _, request, _, _ in given])
        try:
            results = self.handle([datum for _, _, datum, _ in given])
            if not isinstance(results, (list, tuple)) or len(results) != len(given):
                raise TypeError(
                    f"the handler should give a list with one answer for each of {len(given)} requests, got "
                    f"{type(results).__name__}"
                    + (f" of length {len(results)}" if isinstance(results, (list, tuple)) else "")
                )
        except Exception as error:
            traceback.print_exc()  # the operator's log has the whole story, the client one sentence
            status = error.status if isinstance(error, Refused) else 507 if is_memory(error) else 500
            message = f"the handler failed: {type(error).__name__}: {error}"[:2000]
            for at, *_ in given:
                answers[at] = (status, None, [], message)
            return
        for (at, _, _, question), result, reply in zip(given, results, self.context.replies):
            try:
                if question is None:
                    kind, headers, body = predictions.write_value(result, reply["type"])
                else:
                    name, version = self.settings.name, self.settings.version
                    kind, headers, body = open_inference.write_answer(question, as_outputs(result), name, version)
                answers[at] = (reply["status"], kind, [*headers, *reply["headers"]], body)
            except Refused as problem:
                answers[at] = (problem.status, None, problem.headers, problem.message)


def as_outputs(result):
    """What a handler gave for one request, as outputs by name."""
    named = result if isinstance(result, dict) else {"output_0": result}
    outputs = {}
    for name, value in named.items():
        if isinstance(value, (str, bytes, bytearray)):
            value = [value]
        if isinstance(value, (list, tuple)) and value and all(isinstance(v, (str, bytes, bytearray)) for v in value):
            outputs[str(name)] = [v.encode() if isinstance(v, str) else bytes(v) for v in value]
            continue
        try:
            outputs[str(name)] = cresset.as_tensor(value, device="cpu")
        except (TypeError, ValueError, RuntimeError) as error:
            raise Refused(500, f"the handler's output {str(name)[:100]!r} is no tensor: {error}") from None
    return outputs
