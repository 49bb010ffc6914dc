"""Observers go into a graph: in front of what is quantized and behind it, as the backend and the mapping say."""

from collections import Counter
from typing import NamedTuple

import cresset
from cresset import nn
from cresset.fx import Node

from ...nn import intrinsic
from ..backend_config import ObservationType
from ..fake_quantize import FakeQuantizeBase
from ..observer import ObserverBase, ReuseInputObserver
from . import match_utils
from .tracing import replace_module

__all__ = ["prepare"]

SHARED = ObservationType.OUTPUT_SHARE_OBSERVER_WITH_INPUT
NOT_OBSERVED = ObservationType.INPUT_OUTPUT_NOT_OBSERVED
# Results that are no tensors, or read nothing of one but its shape.
_ABOUT = {"size", "dim", "numel", "item", "tolist", "stride"}
_INTEGERS = (cresset.quint8, cresset.qint8, cresset.qint32, cresset.quint4x2)


class Quantized(NamedTuple):
    """What `convert` reads in `node.meta["quantized"]` of a pattern's last node: the names of its nodes, how it is
    observed, whether its input is quantized anew at each call, and the qconfig.
    """

    nodes: tuple
    shared: bool
    is_dynamic: bool
    qconfig: object


def prepare(model, qconfig_mapping, is_qat, scopes, custom, backend_config):
    """Observe a traced model, in place."""
    modules = dict(model.named_modules(remove_duplicate=False))
    qconfigs = _qconfigs(model.graph, modules, qconfig_mapping, scopes)
    _swap_observed(model, modules, custom, qconfigs)
    for node in model.graph.nodes:
        path = node.target if node.op == "call_module" else scopes.get(node.name, ("", None))[0]
        is_quantized = qconfigs[node] if node.op != "get_attr" else qconfig_mapping.global_qconfig
        node.meta["place"] = (path.replace(".", "_"), is_quantized is not None)
        if node.op == "call_module":
            modules[node.target].qconfig = qconfigs[node]
    if is_qat:
        _swap_for_training(model, modules, backend_config, qconfigs)
    inputs = [node for node in model.graph.nodes if node.op == "placeholder"]
    observing = _Observing(model, {inputs[i] for i in custom.input_quantized_indexes})
    taken = {part for kinds in custom.float_to_observed_mapping.values() for part in kinds.values()}
    for match in match_utils.matches(model.graph, modules, backend_config.configs):
        root = match.nodes[0]
        getter = match.config._root_node_getter
        weighted = root if getter is None else getter(match.nodes)
        if root.op == "call_module" and type(modules[root.target]) in taken:
            continue
        observing.observe(match, weighted, qconfigs[weighted])
    _observe_results(model, custom, observing, qconfigs)
    model.graph.lint()
    model.recompile()
    return model


# ---- who gets which qconfig


def _kinds(node, modules):
    """The object types of a node; of a layer that was fused also that of its first part, which has the weight."""
    kind = match_utils.kind_of(node, modules)
    if node.op == "call_module":
        module = modules[node.target]
        if isinstance(module, intrinsic._FusedModule) and isinstance(module, nn.Sequential):
            return [kind, type(module[0])]
        bases = [base for base in kind.__mro__[1:] if base.__module__.startswith(("cresset.nn.", "torch.nn."))]
        return [kind, *bases[:1]] if kind.__module__.startswith(("cresset.ao", "torch.ao")) else [kind]
    return [kind]


def _qconfigs(graph, modules, mapping, scopes):
    found, counts = {}, Counter()
    for node in graph.nodes:
        if node.op not in ("call_module", "call_function", "call_method"):
            found[node] = None
            continue
        kinds = _kinds(node, modules)
        path, owner = (node.target, None) if node.op == "call_module" else scopes.get(node.name, ("", None))
        inside = path.rpartition(".")[0] if node.op == "call_module" else path
        number = counts[inside, kinds[0]]
        counts[inside, kinds[0]] += 1
        found[node] = mapping.find(kinds, path, owner, number)
    return found


def _swap_observed(model, modules, custom, qconfigs):
    table = {kind: to for kinds in custom.float_to_observed_mapping.values() for kind, to in kinds.items()}
    for node, qconfig in qconfigs.items():
        if node.op == "call_module" and qconfig is not None and type(modules[node.target]) in table:
            module = modules[node.target]
            module.qconfig = qconfig
            modules[node.target] = table[type(module)].from_float(module)
            replace_module(model, node.target, modules[node.target])


def _swap_for_training(model, modules, backend_config, qconfigs):
    table = {
        config.pattern if config.fused_module is None else config.fused_module: config.qat_module
        for config in backend_config.configs
        if config.qat_module is not None and isinstance(config.pattern, type)
    }
    for node, qconfig in qconfigs.items():
        if node.op != "call_module" or qconfig is None:
            continue
        module = modules[node.target]
        if type(module) in table and type(module) is not table[type(module)]:
            swapped = table[type(module)].from_float(module)
            swapped.qconfig = qconfig
            modules[node.target] = swapped
            replace_module(model, node.target, swapped)


# ---- observers


def is_observer(node, modules):
    """Whether a node calls an observer or an imitation."""
    return node.op == "call_module" and isinstance(modules.get(node.target), (ObserverBase, FakeQuantizeBase))


def is_number(node):
    """Whether a node's value is no tensor: a size, or what is computed of sizes."""
    if node.op == "call_method":
        return node.target in _ABOUT
    if node.op != "call_function":
        return False
    if node.target is getattr:
        return node.args[1] in ("shape", "ndim", "device", "dtype", "is_quantized")
    whole = getattr(node.target, "__module__", "") in ("_operator", "math", "builtins")
    return whole and bool(node.all_input_nodes) and all(map(is_number, node.all_input_nodes))


def supports(dtypes, activation, weight, has_weight):
    """Whether a backend computes in the dtypes of these observers."""
    wanted, given = dtypes.input_dtype, getattr(activation, "dtype", None)
    is_dynamic = bool(getattr(activation, "is_dynamic", False))
    if bool(dtypes.is_dynamic) != is_dynamic or wanted not in (None, given):
        return False
    if given in _INTEGERS and not dtypes.input_dtype_with_constraints.allows(activation):
        return False
    if not is_dynamic and dtypes.output_dtype not in (None, given):
        return False
    if not has_weight or dtypes.weight_dtype is None:
        return True
    if dtypes.weight_dtype != getattr(weight, "dtype", None):
        return False
    return weight.dtype not in _INTEGERS or dtypes.weight_dtype_with_constraints.allows(weight)


class _Observing:
    def __init__(self, model, quantized_inputs):
        self.model, self.graph, self.count = model, model.graph, 0
        self.modules = dict(model.named_modules(remove_duplicate=False))
        self.quantized = set(quantized_inputs)

    def observe(self, match, weighted, qconfig):
        """Observe what goes into a pattern, and what comes out."""
        config, last = match.config, match.nodes[-1]
        if qconfig is None or config.observation_type is NOT_OBSERVED:
            return
        activation, weight = qconfig.activation(), qconfig.weight()
        reuses = isinstance(activation, ReuseInputObserver)
        operands = config._input_type_to_index
        has_weight = config.root_module is not None or bool(operands)
        if not reuses and not any(supports(d, activation, weight, has_weight) for d in config.dtype_configs):
            return
        is_dynamic = bool(getattr(activation, "is_dynamic", False))
        inputs = self._inputs(match, operands)
        shared = config.observation_type is SHARED or reuses
        if config._num_tensor_args_to_observation_type:
            tensors = [value for value in match.nodes[0].args if isinstance(value, Node) and not is_number(value)]
            kind = config._num_tensor_args_to_observation_type.get(len(tensors))
            if not inputs or kind is NOT_OBSERVED:
                return
            shared = kind is SHARED
        if getattr(activation, "dtype", None) not in (*_INTEGERS, cresset.float16) and not reuses:
            return
        if reuses and not all(self._is_observed(value) for _, value in inputs):
            return
        first = None
        for user, value in inputs:
            observer = value if self._is_observed(value) or reuses else self._observed(value, qconfig.activation, user)
            first = observer if first is None else first
            if shared and observer is not first and is_observer(observer, self.modules):
                self._share(first, observer)
        self._observe_weight(weighted, operands, qconfig)
        last.meta["quantized"] = Quantized(tuple(node.name for node in match.nodes), shared, is_dynamic, qconfig)
        if is_dynamic or first is None:
            return
        if shared and not is_observer(first, self.modules):  # an input that comes quantized
            self.quantized.add(last)
            return
        self._observe_behind(last, self.modules[first.target] if shared else qconfig.activation())

    def _inputs(self, match, operands):
        """(node, tensor it takes) of what comes from outside of a pattern, but for weights."""
        inside, found = set(match.nodes), []
        for node in match.nodes:
            weights = [node.args[i] for i in operands.values() if i < len(node.args)]
            weights += [value for key, value in node.kwargs.items() if key in operands]
            left_out = {value for value in weights if isinstance(value, Node)}
            for value in node.all_input_nodes:
                if value not in inside and value not in left_out and not is_number(value):
                    found.append((node, value))
            if match.config.root_module is not None and node.op == "call_module":
                found = found[:1]  # the others are sizes and states
        return found

    def _is_observed(self, node):
        return is_observer(node, self.modules) or node in self.quantized

    def _enter(self, observer):
        while hasattr(self.model, f"activation_post_process_{self.count}"):
            self.count += 1
        name = f"activation_post_process_{self.count}"
        device = next((p.device for p in (*self.model.parameters(), *self.model.buffers())), None)
        self.model.add_module(name, observer if device is None else observer.to(device))
        self.modules[name] = observer
        return name

    def _observed(self, value, maker, user):
        """The observer of a value for one who takes it: another's with the same dtype, or a new one."""
        made = maker()
        for other in value.users:
            if is_observer(other, self.modules):
                known = self.modules[other.target]
                if (known.dtype, bool(getattr(known, "is_dynamic", False))) == (
                    made.dtype, bool(getattr(made, "is_dynamic", False))
                ):  # fmt: skip
                    user.replace_input_with(value, other)
                    return other
        with self.graph.inserting_before(user):
            observer = self.graph.call_module(self._enter(made), (value,))
        user.replace_input_with(value, observer)
        return observer

    def _share(self, first, other):
        """Let one observer, under two names, see what two would."""
        self.modules[other.target] = self.modules[first.target]
        setattr(self.model, other.target, self.modules[first.target])

    def _observe_weight(self, root, operands, qconfig):
        place = operands.get("weight")
        if place is None or root.op == "call_module":
            return
        weight = root.kwargs.get("weight", root.args[place] if place < len(root.args) else None)
        if isinstance(weight, Node) and not is_observer(weight, self.modules):
            made = qconfig.weight()
            if made.dtype in (*_INTEGERS, cresset.float16):
                self._observed(weight, qconfig.weight, root)

    def _observe_behind(self, last, made):
        users = list(last.users)
        with self.graph.inserting_after(last):
            observer = self.graph.call_module(self._enter(made), (last,))
        for user in users:
            user.replace_input_with(last, observer)


def _observe_results(model, custom, observing, qconfigs):
    """Results that are asked for as integers are observed, where they are not."""
    output = next(node for node in model.graph.nodes if node.op == "output")
    results = output.args[0] if isinstance(output.args[0], (tuple, list)) else [output.args[0]]
    for index in custom.output_quantized_indexes:
        value = results[index]
        if isinstance(value, Node) and not observing._is_observed(value) and qconfigs.get(value) is not None:
            observing._observed(value, qconfigs[value].activation, output)
    output.meta["quantized_results"] = tuple(custom.output_quantized_indexes)
    for node in model.graph.nodes:
        if node in observing.quantized and node.op == "placeholder":
            node.meta["is_quantized"] = True
