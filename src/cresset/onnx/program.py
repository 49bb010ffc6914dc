"""An exported model: what `export` gives, and how it becomes a file."""

import os

from .. import __version__
from . import messages
from .graph import dtype_name, raw_bytes

# One protobuf message has at most 2 GiB; the rest of the model has to fit, too.
MOST_INSIDE = 2**31 - 2**24
IR_VERSIONS = {14: 7, 15: 8, 16: 8, 17: 8, 18: 8, 19: 9, 20: 9, 21: 10, 22: 10, 23: 11}
ALIGNMENT = 4096
LEAST_BESIDE = 1024  # bytes; shapes and axes, which whoever reads the model needs to know its sizes, stay inside


class ONNXProgram:
    """An exported model.

    >>> program = cresset.onnx.export(nn.Linear(2, 3), (cresset.ones(1, 2),))
    >>> program.input_names, program.output_names
    (['input'], ['output'])
    """

    def __init__(self, graph, inputs, outputs, *, export_params=True, keep_initializers_as_inputs=False, flatten=None):
        self.graph = graph
        self.inputs, self.outputs = inputs, outputs  # (name, dtype, shape) each; a free size is its name
        self.export_params, self.keep_initializers_as_inputs = export_params, keep_initializers_as_inputs
        self._flatten, self._session = flatten, None

    @property
    def input_names(self):
        return [name for name, _, _ in self.inputs]

    @property
    def output_names(self):
        return [name for name, _, _ in self.outputs]

    def __repr__(self):
        return (
            f"<ONNXProgram, opset {self.graph.opset}: {self.input_names} -> {self.output_names}, "
            f"{len(self.graph.nodes)} nodes>"
        )

    def to_bytes(self, *, include_initializers=True, keep_initializers_as_inputs=False, external=None):
        """The file's content. `external` maps names of constants to (file, offset, length) for those that lie
        beside."""
        graph, external = self.graph, external or {}
        initializers = []
        if include_initializers:
            for name, tensor in graph.initializers.items():
                shape, dtype = tuple(tensor.shape), dtype_name(tensor.dtype)
                raw = None if name in external else raw_bytes(tensor)
                initializers.append(messages.tensor(name, dtype, shape, raw, external.get(name)))
        inputs = list(self.inputs)
        if keep_initializers_as_inputs or not include_initializers:
            inputs += [(name, dtype_name(t.dtype), tuple(t.shape)) for name, t in graph.initializers.items()]
        content = messages.graph(
            "main_graph",
            [messages.node(n.kind, n.inputs, n.outputs, n.name, n.domain, n.attributes) for n in graph.nodes],
            initializers,
            [messages.value_info(*i) for i in inputs],
            [messages.value_info(*o) for o in self.outputs],
        )
        version = IR_VERSIONS.get(graph.opset, max(IR_VERSIONS.values()))
        return messages.model(content, ir_version=version, opsets=graph.opsets, producer="cresset", version=__version__)

    def save(self, destination, *, include_initializers=None, keep_initializers_as_inputs=None, external_data=None):
        """Write the model to a path or an open binary file.

        Args:
            include_initializers: False leaves the weights out: they become inputs.
            keep_initializers_as_inputs: weights are inputs as well, with the stored ones as defaults.
            external_data: True writes the weights to `<destination>.data`; None and False only if one file cannot hold
                them (None) or never.
        """
        include = self.export_params if include_initializers is None else include_initializers
        keep = self.keep_initializers_as_inputs if keep_initializers_as_inputs is None else keep_initializers_as_inputs
        tensors = self.graph.initializers if include else {}
        total = sum(t.numel() * t.element_size() for t in tensors.values())
        is_file = hasattr(destination, "write")
        if total > MOST_INSIDE and (is_file or external_data is False):
            raise ValueError(
                f"onnx.export: the weights have {total} bytes, and one file holds less than 2 GiB; give a path and "
                "external_data=True"
            )
        external = {}
        if external_data or total > MOST_INSIDE:
            if is_file:
                raise ValueError("onnx.export: external_data=True needs a path, beside which the weights are written")
            beside = {name: t for name, t in tensors.items() if t.numel() * t.element_size() >= LEAST_BESIDE}
            external = self._write_beside(os.fspath(destination) + ".data", beside)
        content = self.to_bytes(include_initializers=include, keep_initializers_as_inputs=keep, external=external)
        if is_file:
            destination.write(content)
        else:
            with open(destination, "wb") as file:
                file.write(content)

    def _write_beside(self, path, tensors):
        places = {}
        with open(path, "wb") as file:
            for name, tensor in tensors.items():
                file.write(b"\0" * (-file.tell() % ALIGNMENT))
                raw = raw_bytes(tensor)
                places[name] = (os.path.basename(path), file.tell(), len(raw))
                file.write(raw)
        return places

    @property
    def model_proto(self):
        """The model as the onnx package's ModelProto, which has to be installed."""
        import onnx

        return onnx.load_from_string(self.to_bytes(include_initializers=self.export_params))

    @property
    def model(self):
        """The model as a Model of the onnx_ir package, which has to be installed: a copy."""
        import onnx_ir

        return onnx_ir.from_proto(self.model_proto)

    def initialize_inference_session(self, initializer=None):
        """Prepare to run the model with ONNX Runtime, which has to be installed; `initializer(bytes)` may make the
        session.
        """
        if initializer is None:
            import onnxruntime

            def initializer(content):
                return onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])

        self._session = initializer(self.to_bytes())

    def __call__(self, *args, **kwargs):
        """Run the model in ONNX Runtime: a tuple of tensors."""
        import cresset

        if self._session is None:
            self.initialize_inference_session()
        tensors = self._flatten(args, kwargs)
        found = self._session.run(
            None, {name: t.detach().cpu().numpy() for name, t in zip(self.input_names, tensors, strict=True)}
        )
        return tuple(cresset.from_numpy(f) for f in found)

    def release(self):
        """Let the session go."""
        self._session = None
