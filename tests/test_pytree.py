"""Trees of containers come apart and together again."""

import dataclasses
import enum
import pickle
import time
from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest

import cresset
from cresset.utils import _pytree as pytree

Point = namedtuple("Point", "x y")
TREE = {"a": (1, [2, None]), "b": Point(3, OrderedDict(c=4)), "d": deque([5], maxlen=2), "e": defaultdict(list, f=6)}


def test_leaves_and_structure_make_the_tree_again():
    leaves, spec = pytree.tree_flatten(TREE)
    assert leaves == [1, 2, None, 3, 4, 5, 6]
    again = spec.unflatten(leaves)
    assert again == TREE
    assert again["d"].maxlen == 2
    assert again["e"].default_factory is list
    assert (spec.num_leaves, spec.num_children, spec.is_leaf()) == (7, 4, False)


def test_map_goes_over_several_trees():
    assert pytree.tree_map(lambda a, b: a * b, [1, (2,)], [10, (20,)]) == [10, (40,)]
    assert pytree.tree_map_only(int, str, [1, "a", 2.0]) == ["1", "a", 2.0]
    assert pytree.tree_any(lambda x: x is None, TREE)
    assert not pytree.tree_all_only(int, lambda x: x > 1, TREE)


def test_paths_lead_to_the_leaves():
    pairs, _ = pytree.tree_flatten_with_path({"a": [Point(1, 2)]})
    assert [pytree.keystr(path) for path, _ in pairs] == ["['a'][0].x", "['a'][0].y"]
    assert pytree.key_get({"a": [Point(1, 2)]}, pairs[1][0]) == 2


def test_specs_compare_print_and_are_text():
    spec = pytree.tree_structure({"b": (1, [2])})
    assert repr(spec) == "TreeSpec(dict, ['b'], [TreeSpec(tuple, None, [*,\n    TreeSpec(list, None, [*])])])"
    assert pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec
    assert pytree.tree_structure((1, 2)) != pytree.tree_structure([1, 2])


def test_a_prefix_is_repeated():
    spec = pytree.tree_structure((1, {"a": 2, "b": 3}))
    assert pytree._broadcast_to_and_flatten((0, 1), spec) == [0, 1, 1]
    assert pytree._broadcast_to_and_flatten([0, 1], spec) is None


def test_a_class_is_registered_once():
    class Box:
        def __init__(self, inside):
            self.inside = inside

    pytree.register_pytree_node(Box, lambda box: ([box.inside], None), lambda children, _: Box(*children))
    assert pytree.tree_map(lambda x: x + 1, Box(1)).inside == 2
    with pytest.raises(ValueError, match="already registered"):
        pytree.register_pytree_node(Box, None, None)
    pytree._deregister_pytree_node(Box)


def test_what_does_not_fit_raises():
    with pytest.raises(ValueError, match="holds 2 items"):
        pytree.tree_unflatten([1], pytree.tree_structure([0, 0]))
    with pytest.raises(ValueError, match="arity mismatch"):
        pytree.tree_map(max, [1, 2], [1])


def test_the_other_form_of_pytorch_is_the_same():
    from cresset.utils import _cxx_pytree, _pytree

    assert _cxx_pytree.__all__ == _pytree.__all__ and _cxx_pytree.PyTreeSpec is _pytree.TreeSpec
    assert _cxx_pytree.tree_flatten({"b": 1, "a": [2]}) == _pytree.tree_flatten({"b": 1, "a": [2]})


class Color(enum.Enum):
    RED = 1


def test_keys_of_an_enumeration_go_to_text_and_back():
    spec = pytree.tree_structure({Color.RED: 5})
    assert pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec
    with pytest.raises(ValueError, match="is no enumeration"):
        pytree.treespec_loads(pytree.treespec_dumps(spec).replace("Color", "OrderedDict"))


def test_a_namedtuple_may_be_given_the_name_it_has_in_text():
    point = namedtuple("point", "x y")
    pytree._register_namedtuple(point, serialized_type_name="shapes.point")
    text = pytree.treespec_dumps(pytree.tree_structure(point(1, 2)))
    assert "shapes.point" in text
    assert pytree.tree_unflatten([3, 4], pytree.treespec_loads(text)) == point(3, 4)


def test_a_class_that_looks_like_a_struct_sequence_is_none():
    class Looks(tuple):
        n_fields = n_sequence_fields = n_unnamed_fields = 0

    assert not pytree.is_structseq_class(Looks)
    assert pytree.is_structseq_class(time.struct_time)


def test_the_fields_of_a_dataclass_are_all_named():
    @dataclasses.dataclass
    class Pair:
        a: int
        b: int = 0

    for names, words in ((["a"], "Missing fields"), (["a", "c"], "Unexpected fields")):
        with pytest.raises(ValueError, match=words):
            pytree.register_dataclass(Pair, field_names=names)


def test_a_constant_needs_a_hash_of_its_own():
    class Setting:
        def __eq__(self, other):
            return True

    with pytest.raises(TypeError, match="non-default `__hash__`"):
        pytree.register_constant(Setting)


def test_a_namedtuple_that_cannot_be_found_again_has_no_text():
    hidden = namedtuple("hidden", "x y")
    with pytest.raises(NotImplementedError, match="Please register using `_register_namedtuple`"):
        pytree.treespec_dumps(pytree.tree_structure(hidden(1, 2)))


def test_the_older_name_of_registering_warns():
    class Box:
        def __init__(self, content):
            self.content = content

    with pytest.warns(FutureWarning, match="_pytree._register_pytree_node is deprecated"):
        pytree._register_pytree_node(Box, lambda box: ([box.content], None), lambda children, context: Box(*children))
    assert pytree.tree_leaves([Box(1), 2]) == [1, 2]
    with pytest.warns(FutureWarning), pytest.warns(UserWarning, match="already registered.*Overwriting"):
        pytree._register_pytree_node(Box, lambda box: ([], box.content), lambda children, context: Box(context))
    assert pytree.tree_leaves([Box(1), 2]) == [2]


def test_named_results_go_through_pickle_and_are_struct_sequences():
    for kind in cresset.return_types.all_return_types:
        made = kind(range(kind.n_fields))
        assert pytree.is_structseq_class(kind) and not pytree.is_namedtuple_class(kind)
        again = pickle.loads(pickle.dumps(made))
        assert type(again) is kind and again == made
        assert pytree.tree_map(lambda x: x + 1, made) == tuple(range(1, kind.n_fields + 1))
