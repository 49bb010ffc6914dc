"""The collectives as operators: `torch.ops._c10d_functional.all_reduce` and others, which tensors of other classes and
recorded programs meet. They are complete when they return, so that `wait_tensor` is the tensor itself.
"""

from cresset.library import Library

from . import _functional_collectives as functional
from . import collectives
from .world import World, get_process_group_ranks

functional_operators = Library("_c10d_functional", "FRAGMENT")
older_operators = Library("c10d_functional", "FRAGMENT")
group_operators = Library("c10d", "FRAGMENT")


def _offer(library, schema, run):
    library.define(schema)
    library.impl(schema.partition("(")[0], run, "CompositeExplicitAutograd")


_offer(
    functional_operators,
    "all_reduce(Tensor input, str reduce_op, Any group_name) -> Tensor",
    functional.all_reduce,
)
_offer(
    functional_operators,
    "all_gather_into_tensor(Tensor input, int group_size, Any group_name) -> Tensor",
    lambda input, _, group: functional.all_gather_tensor(input, 0, group),
)
_offer(
    functional_operators,
    "reduce_scatter_tensor(Tensor input, str reduce_op, int group_size, Any group_name) -> Tensor",
    lambda input, reduction, _, group: functional.reduce_scatter_tensor(input, reduction, 0, group),
)
_offer(
    functional_operators,
    "all_to_all_single(Tensor input, SymInt[] output_split_sizes, SymInt[] input_split_sizes, Any group_name) "
    "-> Tensor",
    functional.all_to_all_single,
)
_offer(functional_operators, "broadcast(Tensor input, int src, Any group_name) -> Tensor", functional.broadcast)
for _library in (functional_operators, older_operators):
    _offer(_library, "wait_tensor(Tensor tensor) -> Tensor", functional.wait_tensor)
_offer(functional_operators, "_wrap_tensor_autograd(Tensor input) -> Tensor", functional.wait_tensor)


def _of_ranks(ranks):
    """The group of these processes."""
    for known in World.groups:
        if get_process_group_ranks(known) == list(ranks):
            return known
    raise ValueError(f"no process group has the ranks {list(ranks)}")


_offer(
    older_operators,
    "all_gather_into_tensor(Tensor shard, str tag, int[] ranks, int group_size) -> Tensor",
    lambda shard, _tag, ranks, _size: functional.all_gather_tensor(shard, 0, _of_ranks(ranks)),
)


def _scatter_(output_tensors, input_tensors, process_group, root_rank, async_op=True, timeout=-1):
    work = collectives.scatter(
        output_tensors[0],
        input_tensors[0] if input_tensors else None,
        group=process_group,
        async_op=async_op,
        group_src=root_rank,
    )
    return output_tensors, work


_offer(
    group_operators,
    "scatter_(Tensor(a!)[] output_tensors, Tensor[][] input_tensors, "
    "__torch__.torch.classes.c10d.ProcessGroup process_group, int root_rank, bool async_op=True, int timeout=-1) "
    "-> (Tensor[], __torch__.torch.classes.c10d.Work)",
    _scatter_,
)
