"""Export to ONNX: `export` writes a model as a file that other runtimes read.

>>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
>>> program = cresset.onnx.export(model, (cresset.ones(1, 4),), input_names=["x"], dynamic_axes={"x": {0: "batch"}})
>>> program
<ONNXProgram, opset 18: ['x'] -> ['output'], 3 nodes>
"""

import contextlib
import enum

from ..show import missing_names as _missing_names
from . import errors
from .errors import OnnxExporterError

__all__ = ["ONNXProgram", "OnnxExporterError", "errors", "export", "is_in_onnx_export"]

producer_name = "cresset"


class TrainingMode(enum.Enum):
    """In which mode the model is exported."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


class OperatorExportTypes(enum.Enum):
    """What becomes of operators that ONNX does not have. Only ONNX is written: the others are names."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


class TensorProtoDataType(enum.IntEnum):
    """The numbers that ONNX has for dtypes."""

    UNDEFINED = 0
    FLOAT = 1
    UINT8 = 2
    INT8 = 3
    UINT16 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    STRING = 8
    BOOL = 9
    FLOAT16 = 10
    DOUBLE = 11
    UINT32 = 12
    UINT64 = 13
    COMPLEX64 = 14
    COMPLEX128 = 15
    BFLOAT16 = 16
    FLOAT8E4M3FN = 17
    FLOAT8E4M3FNUZ = 18
    FLOAT8E5M2 = 19
    FLOAT8E5M2FNUZ = 20


_depth = 0


def is_in_onnx_export():
    """Whether the program runs inside of `export`.

    >>> cresset.onnx.is_in_onnx_export()
    False
    """
    return _depth > 0


@contextlib.contextmanager
def _exporting():
    global _depth
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1


def export(
    model,
    args=(),
    f=None,
    *,
    kwargs=None,
    verbose=None,
    input_names=None,
    output_names=None,
    opset_version=None,
    dynamo=True,
    external_data=True,
    dynamic_shapes=None,
    custom_translation_table=None,
    report=False,
    optimize=True,
    verify=False,
    profile=False,
    dump_exported_program=False,
    artifacts_dir=".",
    export_params=True,
    keep_initializers_as_inputs=False,
    dynamic_axes=None,
    training=TrainingMode.EVAL,
    operator_export_type=OperatorExportTypes.ONNX,
    do_constant_folding=True,
    custom_opsets=None,
    export_modules_as_functions=False,
    autograd_inlining=True,
):
    """Write a model as ONNX. The model runs on the example inputs; what it calls is written.

    Args:
        model: a module, or a function of tensors.
        args: example inputs, a tuple (or one tensor). Tensors become inputs of the file, other arguments are constants
            of it.
        f: where to write: a path or an open binary file; None only gives the program.
        kwargs: example inputs by name.
        verbose: print the program's nodes.
        input_names, output_names: the names in the file, in order; else the parameters' names and "output".
        opset_version: the version of ONNX's operators, 14 to 23; 18 by default.
        external_data: the weights may lie in a file beside, `<f>.data`. They do when one file cannot hold them (2 GiB);
            False makes that an error.
        dynamic_axes: the free dimensions: {"x": {0: "batch"}} or {"x": [0]}. The same name means the same size.
        dynamic_shapes: the same for the model's parameters in order or by name: ({0: "batch"}, None).
        verify: run the program in ONNX Runtime on the example and compare.
        export_params: False leaves the weights out: they become inputs.
        keep_initializers_as_inputs: list the weights as inputs, too.
        training: EVAL (default), TRAINING, or PRESERVE: the mode in which the model is.
        custom_opsets: versions of other domains that rules of your own use.
        dynamo, optimize, do_constant_folding, autograd_inlining: accepted; there is one way to export, and what is
            constant is folded.

    Returns: an `ONNXProgram`.

    >>> import io
    >>> file = io.BytesIO()
    >>> _ = cresset.onnx.export(nn.Linear(2, 3), (cresset.ones(1, 2),), file, input_names=["x"], output_names=["y"])
    >>> len(file.getvalue()) > 0
    True
    """
    import cresset

    from .exporting import export_program
    from .program import ONNXProgram

    for name, value in (("report", report), ("profile", profile), ("dump_exported_program", dump_exported_program),
                        ("export_modules_as_functions", export_modules_as_functions),
                        ("custom_translation_table", custom_translation_table)):  # fmt: skip
        if value:
            raise NotImplementedError(f"onnx.export: {name} is not supported; leave it out")
    if operator_export_type not in (OperatorExportTypes.ONNX, OperatorExportTypes.ONNX_ATEN_FALLBACK):
        raise NotImplementedError(f"onnx.export: operator_export_type={operator_export_type} is not supported; ONNX is")
    if isinstance(args, cresset.Tensor):
        args = (args,)
    args = tuple(args)
    if kwargs is None and args and isinstance(args[-1], dict) and _takes(model, args[:-1], args[-1]):
        args, kwargs = args[:-1], args[-1]  # the older way to give arguments by name
    graph, inputs, outputs, example = export_program(
        model, args, dict(kwargs or {}), input_names=input_names, output_names=output_names,
        opset_version=opset_version, dynamic_axes=dynamic_axes,
        dynamic_shapes=dynamic_shapes, training=getattr(training, "name", str(training)), exporting=_exporting,
    )  # fmt: skip
    graph.opsets.update(custom_opsets or {})
    program = ONNXProgram(
        graph,
        inputs,
        outputs,
        export_params=export_params,
        keep_initializers_as_inputs=keep_initializers_as_inputs,
        flatten=_tensors,
    )
    if verbose:
        for node in graph.nodes:
            print(f"{', '.join(node.outputs)} = {node.kind}({', '.join(node.inputs)})")
    if verify:
        _verify(program, model, example)
    if f is not None:
        program.save(f, external_data=None if external_data else False)
    return program


def _tensors(args, kwargs):
    from ..pytree import tree_leaves
    from ..tensors.tensor import Tensor

    return [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]


def _takes(model, args, kwargs):
    """Whether the model may be called so."""
    import inspect

    try:
        inspect.signature(getattr(model, "forward", model)).bind(*args, **kwargs)
    except (TypeError, ValueError):
        return False
    return all(isinstance(key, str) for key in kwargs)


def _verify(program, model, example):
    """Compare with the model itself."""
    import cresset

    from .exporting import _outputs

    with cresset.no_grad():
        expected = [t for _, t in _outputs(model(*example.args, **example.kwargs))]
    for name, got, want in zip(program.output_names, program(*example.args, **example.kwargs), expected, strict=True):
        if not cresset.allclose(got.to(want.dtype), want, rtol=1e-3, atol=1e-3, equal_nan=True):
            raise OnnxExporterError(
                f"onnx.export: ONNX Runtime gives another {name!r} than the model; the largest difference is "
                f"{(got - want).abs().max().item()}"
            )


def __getattr__(name):
    if name == "ONNXProgram":
        from .program import ONNXProgram

        return ONNXProgram
    if name in ("register_custom_op_symbolic", "unregister_custom_op_symbolic"):
        from . import custom

        return getattr(custom, name)
    return _missing(name)


_missing = _missing_names.of(__name__)
