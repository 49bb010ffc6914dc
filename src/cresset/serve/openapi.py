"""The server's API as an OpenAPI document, and as a page made from it."""

import html

import cresset

TENSOR = {
    "type": "object",
    "required": ["name", "shape", "datatype"],
    "properties": {
        "name": {"type": "string"},
        "shape": {"type": "array", "items": {"type": "integer", "minimum": 0}},
        "datatype": {
            "type": "string",
            "enum": "BOOL UINT8 UINT16 UINT32 UINT64 INT8 INT16 INT32 INT64 FP16 FP32 FP64 BF16 BYTES".split(),
        },
        "data": {"type": "array", "items": {}},
        "parameters": {"type": "object"},
    },
}
QUESTION = {
    "type": "object",
    "required": ["inputs"],
    "properties": {
        "id": {"type": "string"},
        "inputs": {"type": "array", "items": {"$ref": "#/components/schemas/Tensor"}},
        "outputs": {"type": "array", "items": {"type": "object"}},
        "parameters": {"type": "object"},
    },
}
ANSWER = {
    "type": "object",
    "properties": {
        "model_name": {"type": "string"},
        "model_version": {"type": "string"},
        "id": {"type": "string"},
        "outputs": {"type": "array", "items": {"$ref": "#/components/schemas/Tensor"}},
    },
}

# (group, method, path, what it does, parameters of the query, what is sent)
OPERATIONS = [
    ("inference", "post", "/v2/models/{name}/infer", "Ask a model (Open Inference Protocol); without a version its "
                                                     "default, or the split, answers.", (), "Question"),
    ("inference", "post", "/v2/models/{name}/versions/{version}/infer", "Ask one version of a model.", (), "Question"),
    ("inference", "post", "/predictions/{name}", "Ask a model as TorchServe's clients do: one sample in, its answer "
                                                 "out.", (), "any"),
    ("inference", "post", "/predictions/{name}/{version}", "Ask one version as TorchServe's clients do.", (), "any"),
    ("health", "get", "/v2/health/live", "Is the server alive?", (), None),
    ("health", "get", "/v2/health/ready", "Are all models ready? 503 if not.", (), None),
    ("health", "get", "/ping", "The same, as TorchServe has it.", (), None),
    ("health", "get", "/v2/models/{name}/ready", "Is a model ready? 503 if not.", (), None),
    ("health", "get", "/v2/models/{name}/versions/{version}/ready", "Is a version ready? 503 if not.", (), None),
    ("metadata", "get", "/v2", "The server's name, version and extensions.", (), None),
    ("metadata", "get", "/v2/models/{name}", "What a model takes and gives.", (), None),
    ("metadata", "get", "/v2/models/{name}/versions/{version}", "What a version takes and gives.", (), None),
    ("metadata", "get", "/metrics", "Numbers for Prometheus.", (), None),
    ("metadata", "get", "/status.json", "What the status page shows.", (), None),
    ("management", "get", "/models", "The models.", ("limit", "next_page_token"), None),
    ("management", "post", "/models", "Load a file of the store.", ("url", "model_name", "version", "initial_workers",
        "batch_size", "max_batch_delay", "response_timeout"), None),
    ("management", "get", "/models/{name}", "The default version: settings, workers, queue.", (), None),
    ("management", "put", "/models/{name}", "Change the number of workers.", ("min_worker", "max_worker",
        "synchronous"), None),
    ("management", "delete", "/models/{name}", "Unload all versions.", (), None),
    ("management", "put", "/models/{name}/split", "Split requests among versions by weight: {\"1\": 9, \"2\": 1}; {} "
                                                  "ends it.", (), "any"),
    ("management", "get", "/models/{name}/{version}", "One version, or `all`.", (), None),
    ("management", "put", "/models/{name}/{version}", "Change the number of a version's workers.", ("min_worker",
        "max_worker", "synchronous"), None),
    ("management", "delete", "/models/{name}/{version}", "Unload a version.", (), None),
    ("management", "put", "/models/{name}/{version}/set-default", "Let this version answer requests that name none.",
        (), None),
    ("management", "post", "/v2/repository/index", "What is loaded and what the store has.", (), "any"),
    ("management", "post", "/v2/repository/models/{name}/load", "Load a model of the store.", (), None),
    ("management", "post", "/v2/repository/models/{name}/unload", "Unload a model.", (), None),
]  # fmt: skip

STATUSES = {
    "200": "done",
    "400": "the request is wrong; the answer says how",
    "401": "the token is missing",
    "404": "there is no such model or version",
    "413": "the request is too large",
    "429": "too many requests wait; Retry-After says when to come back",
    "503": "no worker can answer",
    "504": "it took too long",
}


def document():
    """The OpenAPI document."""
    paths = {}
    for group, method, path, words, query, sent in OPERATIONS:
        parts = [piece[1:-1] for piece in path.split("/") if piece.startswith("{")]
        parameters = [{"name": n, "in": "path", "required": True, "schema": {"type": "string"}} for n in parts]
        parameters += [{"name": n, "in": "query", "schema": {"type": "string"}} for n in query]
        operation = {"summary": words, "tags": [group], "parameters": parameters}
        operation["responses"] = {code: {"description": why} for code, why in STATUSES.items()}
        if sent is not None:
            schema = {"$ref": "#/components/schemas/Question"} if sent == "Question" else {}
            operation["requestBody"] = {"content": {"application/json": {"schema": schema}}}
        if sent == "Question":
            operation["responses"]["200"]["content"] = {
                "application/json": {"schema": {"$ref": "#/components/schemas/Answer"}}
            }
        paths.setdefault(path, {})[method] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": "cresset serve", "version": cresset.version.__version__},
        "paths": paths,
        "components": {"schemas": {"Tensor": TENSOR, "Question": QUESTION, "Answer": ANSWER}},
    }


def page(style):
    """The document for people."""
    groups = {}
    for group, method, path, words, query, _ in OPERATIONS:
        shown = html.escape(path).replace("{", "<i>{").replace("}", "}</i>")
        given = f"<div class=query>?{html.escape(' &'.join(query))}</div>" if query else ""
        row = (
            f"<tr><td><b class={method}>{method.upper()}</b></td><td><code>{shown}</code>{given}</td>"
            f"<td>{html.escape(words)}</td></tr>"
        )
        groups.setdefault(group, []).append(row)
    tables = "".join(
        f"<section><h2>{group}</h2><div class=wide><table>{''.join(rows)}</table></div></section>"
        for group, rows in groups.items()
    )
    statuses = "".join(f"<tr><td><b>{code}</b></td><td>{html.escape(why)}</td></tr>" for code, why in STATUSES.items())
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>cresset serve: API</title><style>{style}</style><body><header><h1>cresset serve</h1>"
        '<nav><a href="/">status</a> <b>API</b> <a href="/openapi.json">openapi.json</a> <a '
        'href="/metrics">metrics</a></nav>'
        f"</header>{tables}<section><h2>statuses</h2><table>{statuses}</table></section></body></html>"
    )
