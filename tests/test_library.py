"""Operators of one's own: schemas, kernels, shape rules, derivatives, vmap, and the check that they agree."""

from collections.abc import Sequence

import pytest

import cresset as torch
from cresset import library
from cresset.ops import namespaces

X = torch.tensor([1.0, 2.0, 3.0])


@library.custom_op("test_library::scaled", mutates_args=())
def scaled(x: torch.Tensor, by: float = 2.0) -> torch.Tensor:
    return x * by


@scaled.register_fake
def _(x, by=2.0):
    return torch.empty_like(x)


def _keep(ctx, inputs, output):
    ctx.by = inputs[1]


scaled.register_autograd(lambda ctx, grad: (grad * ctx.by, None), setup_context=_keep)


@library.custom_op("test_library::count_up", mutates_args={"x"})
def count_up(x: torch.Tensor, by: int) -> None:
    x.add_(by)


def test_numbers_of_numpy_are_numbers():
    numpy = pytest.importorskip("numpy")
    assert torch.ops.test_library.scaled(X, numpy.float32(0.5)).tolist() == [0.5, 1.0, 1.5]
    x = torch.zeros(2)
    torch.ops.test_library.count_up(x, numpy.int32(3))
    assert x.tolist() == [3.0, 3.0]
    with pytest.raises(RuntimeError, match="Expected a value of type 'SymInt'"):
        torch.ops.test_library.count_up(x, numpy.float32(3))


def test_a_custom_operator_is_found_by_name():
    assert torch.ops.test_library.scaled(X).tolist() == [2.0, 4.0, 6.0]
    assert torch.ops.test_library.scaled.default(X, 3.0).tolist() == [3.0, 6.0, 9.0]
    assert (
        str(torch.ops.test_library.scaled.default._schema) == "test_library::scaled(Tensor x, float by=2.0) -> Tensor"
    )
    assert torch.ops.test_library.scaled.overloads() == ["default"]
    with pytest.raises(AttributeError, match="no attribute 'absent'"):
        _ = torch.ops.test_library.absent


def test_it_takes_part_in_autograd_vmap_and_the_meta_device():
    x = X.clone().requires_grad_()
    scaled(x, 5.0).sum().backward()
    assert x.grad.tolist() == [5.0, 5.0, 5.0]
    assert torch.vmap(scaled)(X.reshape(3, 1)).tolist() == [[2.0], [4.0], [6.0]]
    assert torch.vmap(torch.func.grad(lambda v: scaled(v, 3.0).sum()))(X).tolist() == [3.0, 3.0, 3.0]
    assert torch.func.grad(lambda v: torch.vmap(scaled)(v).sum())(X).tolist() == [2.0, 2.0, 2.0]
    assert scaled(torch.empty(4, device="meta")).shape == (4,)


def test_a_rule_for_vmap_gets_whole_batches():
    seen = []

    @library.custom_op("test_library::ruled", mutates_args=())
    def ruled(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x + y

    @ruled.register_vmap
    def _(info, in_dims, x, y):
        seen.append((info.batch_size, in_dims, tuple(x.shape)))
        return ruled(x.movedim(in_dims[0], -1), y).movedim(-1, 0), 0

    assert torch.vmap(ruled, (0, None))(torch.ones(2, 3), torch.tensor(1.0)).tolist() == [[2.0] * 3] * 2
    assert seen == [(2, (0, None), (2, 3))]


def test_writes_are_counted_and_told_truthfully():
    x = torch.zeros(2)
    count_up(x, 3)
    assert (x.tolist(), x._version > 0) == ([3.0, 3.0], True)
    assert str(count_up._opoverload._schema) == "test_library::count_up(Tensor(a0!) x, SymInt by) -> ()"

    @library.custom_op("test_library::secretly", mutates_args=())
    def secretly(x: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        return x.clone()

    with pytest.raises(library.OpCheckError, match="not defined as mutable"):
        library.opcheck(secretly, (torch.zeros(2),), test_utils="test_schema")


def test_results_must_be_memory_of_their_own():
    @library.custom_op("test_library::same", mutates_args=())
    def same(x: torch.Tensor) -> torch.Tensor:
        return x

    with pytest.raises(RuntimeError, match="may not alias any inputs"):
        same(X)


def test_missing_registrations_say_so():
    @library.custom_op("test_library::bare", mutates_args=())
    def bare(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        bare(X.clone().requires_grad_()).sum().backward()
    with pytest.raises(RuntimeError, match=r"registered for <CustomOpDef\(test_library::bare\)>.*`bare.register_fake`"):
        bare(torch.empty(2, device="meta"))
    with pytest.raises(RuntimeError, match="Expected a value of type 'Tensor' for argument 'x'"):
        bare(3)
    with pytest.raises(RuntimeError, match="missing value for argument 'x'"):
        bare()


def test_opcheck_passes_a_sound_operator_and_finds_a_wrong_shape_rule():
    results = library.opcheck(scaled, (X.clone().requires_grad_(), 3.0))
    assert set(results.values()) == {"SUCCESS"}

    @library.custom_op("test_library::wrong", mutates_args=())
    def wrong(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    wrong.register_fake(lambda x: x.new_empty(x.numel() + 1))
    with pytest.raises(library.OpCheckError, match="shape rule"):
        library.opcheck(wrong, (X,))


def test_lists_and_several_results():
    @library.custom_op("test_library::mixed", mutates_args=())
    def mixed(xs: list[torch.Tensor], n: int | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        return xs[0] * xs[1], xs[0] + 1

    def keep(ctx, inputs, output):
        ctx.save_for_backward(*inputs[0])

    def backward(ctx, first, second):
        a, b = ctx.saved_tensors
        return [first * b + second, first * a], None

    mixed.register_autograd(backward, setup_context=keep)
    a, b = torch.tensor(2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)
    product, more = mixed([a, b])
    (product + more).backward()
    assert (a.grad.item(), b.grad.item()) == (4.0, 2.0)


def test_a_library_defines_and_implements():
    made = library.Library("test_library_made", "FRAGMENT")
    assert made.define("plus_one(Tensor x) -> Tensor") == "plus_one"
    made.impl("plus_one", lambda x: x + 1, "CompositeImplicitAutograd")
    x = X.clone().requires_grad_()
    torch.ops.test_library_made.plus_one(x).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(RuntimeError, match="multiple times"):
        made.define("plus_one(Tensor x) -> Tensor")
    with pytest.raises(ValueError, match="reserved namespace"):
        library.Library("aten", "DEF")


def test_hints_become_a_schema():
    def f(
        x: torch.Tensor, y: torch.Tensor | None, *, sizes: list[int], name: str = "a", on: bool = True
    ) -> list[torch.Tensor]: ...

    expected = '(Tensor(a0!) x, Tensor? y, *, SymInt[] sizes, str name="a", bool on=True) -> Tensor[]'
    assert library.infer_schema(f, mutates_args=("x",)) == expected
    assert namespaces.Schema("n::f" + expected).arguments[0].is_written
    with pytest.raises(ValueError, match="must have a type annotation"):
        library.infer_schema(lambda x: x, mutates_args=())


def test_aten_names_reach_our_operators():
    assert torch.ops.aten.add.Tensor(X, 1).tolist() == [2.0, 3.0, 4.0]
    assert torch.ops.aten.view.default(X, (3, 1)).shape == (3, 1)
    assert torch.ops.aten.sym_size(X, 0) == 3
    assert torch.ops.aten.mm is torch.ops.aten.mm
    assert str(torch.ops.aten.add.Tensor) == "aten.add.Tensor"
    with pytest.raises(AttributeError, match="has no overload name 'nope'"):
        _ = torch.ops.aten.add.nope


class TestArguments:
    def test_tags_are_kept_with_the_operator(self):
        library.define("arguments_tags::one", "(Tensor x) -> Tensor", tags=("pt2_compliant_tag",))
        assert torch.ops.arguments_tags.one.default.tags == ["pt2_compliant_tag"]
        lib = library.Library("arguments_tags", "FRAGMENT")
        lib.define("two(Tensor x) -> Tensor", tags=["a", "b"])
        assert torch.ops.arguments_tags.two.default.tags == ["a", "b"]
        made = library.custom_op("arguments_tags::three", mutates_args=(), tags="c", schema="(Tensor x) -> Tensor")(
            lambda x: x.clone()
        )
        assert made._opoverload.tags == ["c", torch.Tag.pt2_compliant_tag]

    def test_an_analysis_of_aliases_is_one_that_there_is(self):
        lib = library.Library("arguments_alias", "DEF")
        lib.define("fine(Tensor x) -> Tensor", "CONSERVATIVE")
        with pytest.raises(RuntimeError, match="Invalid alias_analysis type"):
            lib.define("bad(Tensor x) -> Tensor", "WILD")
        with pytest.raises(RuntimeError, match="Invalid alias_analysis type"):
            library.define(lib, "bad(Tensor x) -> Tensor", alias_analysis="WILD")

    def test_a_kernel_is_not_replaced_when_that_is_not_allowed(self):
        lib = library.Library("arguments_override", "DEF")
        lib.define("f(Tensor x) -> Tensor")
        lib.impl("f", lambda x: x + 1, "CPU")
        with pytest.raises(RuntimeError, match="already a kernel registered"):
            lib.impl("f", lambda x: x + 2, "CPU", allow_override=False)
        lib.impl("f", lambda x: x + 3, "CPU")
        assert torch.ops.arguments_override.f(torch.zeros(1)).item() == 3
        library.register_fake("arguments_override::f", torch.empty_like)
        with pytest.raises(RuntimeError, match="already has a fake impl"):
            library.register_fake("arguments_override::f", torch.empty_like, allow_override=False)

    def test_there_are_no_sets_of_keys_to_give_to_a_kernel(self):
        lib = library.Library("arguments_keys", "DEF")
        lib.define("f(Tensor x) -> Tensor")
        with pytest.raises(NotImplementedError, match="with_keyset"):
            lib.impl("f", lambda keys, x: x, "CPU", with_keyset=True)
        with pytest.raises(NotImplementedError, match="with_keyset"):
            lib.fallback(lambda keys, x: x, with_keyset=True)


def test_operators_and_namespaces_are_their_own_copies():
    import copy
    import pickle

    for op in (torch.ops.aten, torch.ops.aten.add, torch.ops.aten.add.Tensor, torch.ops.test_library.scaled.default):
        assert copy.deepcopy(op) is op and pickle.loads(pickle.dumps(op)) is op


def test_a_library_takes_back_what_it_defined():
    with library._scoped_library("test_library_scoped", "DEF") as lib:
        lib.define("one(Tensor x) -> Tensor")
        lib.impl("one", lambda x: x + 1, "CPU")
        assert torch.ops.test_library_scoped.one(X).tolist() == [2.0, 3.0, 4.0]
        with pytest.raises(RuntimeError, match="Only a single TORCH_LIBRARY"):
            library.Library("test_library_scoped", "DEF")
        kernel = library.get_kernel("test_library_scoped::one", "CPU")
        assert kernel.call_boxed(None, X).tolist() == [2.0, 3.0, 4.0]
    assert not hasattr(torch.ops.test_library_scoped, "one")
    with pytest.raises(RuntimeError, match="has been invalidated"):
        kernel.call_boxed(None, X)


def test_tags_that_promise_what_is_returned_are_held():
    @library.custom_op("test_library::bump_", mutates_args={"x"}, tags=torch.Tag.inplace)
    def bump_(x: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        return x

    x = torch.zeros(2)
    assert bump_(x) is x and x.tolist() == [1.0, 1.0]
    assert str(bump_._opoverload._schema) == "test_library::bump_(Tensor(a0!) x) -> Tensor(a0!)"

    @library.custom_op("test_library::wrong_", mutates_args={"x"}, tags=torch.Tag.inplace)
    def wrong_(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    with pytest.raises(RuntimeError, match="must return its first argument"):
        wrong_(x)
    with pytest.raises(ValueError, match="return annotation"):

        @library.custom_op("test_library::nothing_", mutates_args={"x"}, tags=torch.Tag.inplace)
        def nothing_(x: torch.Tensor) -> None:
            pass


def test_an_operator_of_kernels_of_triton_launches_them():
    class Kernel:  # as triton.jit makes them: kernel[grid](arguments)
        def __getitem__(self, grid):
            return lambda x, out, amount: out.copy_(x + amount).mul_(grid[0])

    @library.triton_op("test_library::launched", mutates_args={})
    def launched(x: torch.Tensor, amount: float) -> torch.Tensor:
        out = torch.empty_like(x)
        if x.device.type != "meta":
            library.wrap_triton(Kernel())[(2,)](x, out, amount)
        return out

    def backward(ctx, grad):
        return 2 * grad, None

    x = torch.ones(3, requires_grad=True)
    launched.register_autograd(backward)
    y = launched(x, 1.0)
    y.sum().backward()
    assert y.tolist() == [4.0] * 3 and x.grad.tolist() == [2.0] * 3
    assert launched(torch.ones(5, device="meta"), 1.0).shape == (5,)
    launched.register_kernel("cpu")(lambda x, amount: x - amount)
    assert torch.ops.test_library.launched(torch.ones(2), 1.0).tolist() == [0.0, 0.0]
    with pytest.raises(RuntimeError, match="triton.jit"):
        library.wrap_triton(lambda x: x)


def test_kernels_of_aten_are_refused_in_words():
    with pytest.raises(NotImplementedError, match="cannot be replaced"):
        library.Library("aten", "IMPL").impl("add.Tensor", lambda a, b: a, "CPU")


def test_a_rule_for_vmap_gets_keyword_only_arguments_by_name():
    with library._scoped_library("test_library_vmap", "FRAGMENT") as lib:
        lib.define("scaled(Tensor x, *, float by) -> Tensor")
        lib.impl("scaled", lambda x, *, by: x * by, "CPU")
        seen = []

        def rule(info, in_dims, x, *, by):
            seen.append((info.batch_size, in_dims, by))
            return x * by, 0

        library.register_vmap("test_library_vmap::scaled", rule, lib=lib)
        assert torch.vmap(torch.ops.test_library_vmap.scaled)(X, by=2.0).tolist() == [2.0, 4.0, 6.0]
    assert seen == [(3, (0,), 2.0)]


def test_a_dtype_may_be_a_default():
    @library.custom_op("test_library::converted", mutates_args=())
    def converted(x: torch.Tensor, to: torch.dtype = torch.float64) -> torch.Tensor:
        return x.to(to)

    assert converted(X).dtype == torch.float64
    assert converted._opoverload._schema.arguments[1].default_value == 7


def test_an_operator_is_found_by_its_name():
    assert torch._library.utils.lookup_op("test_library::scaled") is torch.ops.test_library.scaled.default
    assert torch._library.utils.is_functional_schema("f(Tensor x) -> Tensor")
    entry = torch._library.simple_registry.singleton.find("test_library::scaled")
    assert "test_library.py" in entry.fake_impl.kernel.source


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ("f(thing a) -> Tensor", "unknown type specifier 'thing'"),
        ("f(Tensor a) -> thing", "unknown type specifier 'thing'"),
        ("f(int64_t a) -> Tensor", "Use `SymInt` or `int`"),
        ("f(double a) -> Tensor", "Use `float`"),
    ],
)
def test_types_that_schemas_do_not_have_are_refused(schema, text):
    with library._scoped_library("test_library_types", "FRAGMENT") as lib, pytest.raises(RuntimeError, match=text):
        lib.define(schema)


def test_a_default_device_comes_as_a_device():
    @library.custom_op("test_library::placed", mutates_args=())
    def placed(x: torch.Tensor, where: torch.device = "cpu") -> torch.Tensor:
        assert where == torch.device("cpu")
        return x.clone()

    assert placed(X).tolist() == [1.0, 2.0, 3.0]


def test_a_kernel_of_all_backends_tells_shapes_until_a_fake_one_does():
    with library._scoped_library("test_library_shapes", "FRAGMENT") as lib:
        lib.define("f(Tensor x) -> Tensor")
        lib.impl("f", lambda x: x * 1, "CompositeExplicitAutograd")
        op = torch.ops.test_library_shapes.f
        assert op(torch.ones(3, device="meta")).shape == (3,)
        with torch._subclasses.FakeTensorMode():
            assert op(torch.ones(3)).shape == (3,)
        library.register_fake("test_library_shapes::f", lambda x: torch.cat([x, x]), lib=lib)
        assert op(torch.ones(3, device="meta")).shape == (6,)


def test_a_fake_impl_replaces_a_meta_kernel_where_it_may():
    with library._scoped_library("test_library_shapes", "FRAGMENT") as lib:
        lib.define("g(Tensor x) -> Tensor")
        lib.impl("g", lambda x: x * 1, "Meta")
        with pytest.raises(RuntimeError, match="already has an DispatchKey::Meta implementation"):
            library.register_fake("test_library_shapes::g", lambda x: x, lib=lib, allow_override=False)
        library.register_fake("test_library_shapes::g", lambda x: torch.cat([x, x]), lib=lib)
        assert torch.ops.test_library_shapes.g(torch.ones(3, device="meta")).shape == (6,)


def test_an_autograd_kernel_calls_what_is_below_it():
    with library._scoped_library("test_library_below", "FRAGMENT") as lib:
        lib.define("f(Tensor x) -> Tensor")

        class Tripled(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                with torch._C._AutoDispatchBelowAutograd():
                    return torch.ops.test_library_below.f(x)

            @staticmethod
            def backward(ctx, grad):
                return grad * 3

        lib.impl("f", lambda x: x * 3, "CPU")
        lib.impl("f", Tripled.apply, "Autograd")
        x = torch.ones(1, requires_grad=True)
        torch.ops.test_library_below.f(x).backward()
        assert x.grad.tolist() == [3.0]


def test_a_library_that_is_not_there_cannot_be_loaded():
    with pytest.raises(OSError, match="Could not load this library: .*absent.so"):
        torch.ops.load_library("absent.so")


def test_every_listed_type_of_a_parameter_makes_a_schema():
    from cresset._library.infer_schema import SUPPORTED_PARAM_TYPES

    for hint, text in SUPPORTED_PARAM_TYPES.items():

        def f(x):
            return None

        f.__annotations__ = {"x": hint, "return": None}
        assert library.infer_schema(f, mutates_args=()) == f"({text} x) -> ()"


def test_any_sequence_is_a_list():
    class Three(Sequence):
        def __getitem__(self, index):
            return (1, 2, 3)[index]

        def __len__(self):
            return 3

    @library.custom_op("test_library::shaped", mutates_args=())
    def shaped(x: torch.Tensor, sizes: Sequence[int]) -> torch.Tensor:
        assert sizes == [1, 2, 3]
        return x.clone()

    shaped(X, Three())


def test_a_definition_in_a_library_is_in_its_namespace():
    with torch.library._scoped_library("conform_space", "FRAGMENT") as library:
        torch.library.define("other::inside", "(Tensor x) -> Tensor", lib=library)
        assert torch.ops.conform_space.inside.default._schema.name == "conform_space::inside"


def test_a_pair_of_numbers_is_no_scalar_and_only_tensors_may_be_missing_in_lists():
    for hint in (tuple[int, float], list[int | None]):

        def f(x: torch.Tensor, y: hint) -> torch.Tensor: ...

        with pytest.raises(ValueError, match="unsupported type"):
            torch.library.infer_schema(f, mutates_args=())


def test_opcheck_names_the_argument_that_a_result_shares_memory_with():
    with torch.library._scoped_library("conform_alias", "FRAGMENT") as library:
        library.define("same(Tensor x) -> Tensor")
        library.impl("same", lambda x: x.view_as(x), "CPU")
        with pytest.raises(Exception, match="Argument x is not defined to alias output but was aliasing"):
            torch.library.opcheck(torch.ops.conform_alias.same.default, (torch.ones(2),))


def test_questions_about_arguments_and_results():
    x, y = torch.ones(2, requires_grad=True), torch.ones(2)
    assert torch._C._any_requires_grad(y, [x]) and not torch._C._any_requires_grad(y, a=y)
    shares = torch._C._any_output_is_alias_to_input_or_output
    assert shares((y,), {}, (y[1:],)) and not shares((y,), None, (y * 2,))
    assert [a.type for a in torch._C.parse_schema("f(Tensor[]? x, int n) -> ()").arguments] == ["Tensor[]?", "int"]


def test_opcheck_takes_operators_of_ours_and_says_what_it_takes():
    x = torch.randn(3, requires_grad=True)
    results = library.opcheck(torch.ops.aten.sin.default, (x,))
    assert set(results.values()) == {"SUCCESS"} and "test_aot_dispatch_dynamic" in results
    assert len(library.opcheck(torch.ops.aten.sin.default, (x,), test_utils="ALL")) > len(results)
    with pytest.raises(ValueError, match="must be an OpOverload"):
        library.opcheck(torch.sin, (x,))
    with pytest.raises(ValueError, match="test_utils to be subset of"):
        library.opcheck(torch.ops.aten.sin.default, (x,), test_utils="test_nothing")
    with pytest.raises(RuntimeError, match="has the overloads"):
        library.opcheck(torch.ops.aten.add, (x, x))


def test_opcheck_finds_results_that_share_memory_and_strides_that_differ():
    with library._scoped_library("conform_checks", "DEF") as lib:
        lib.define("twice(Tensor x) -> (Tensor, Tensor)")
        lib.impl("twice", lambda x: (y := x.clone(), y[:1]), "CPU")
        with pytest.raises(Exception, match="Outputs 0 and 1 alias unexpectedly"):
            library.opcheck(torch.ops.conform_checks.twice.default, (X,), test_utils="test_schema")
        lib.define("turned(Tensor x) -> Tensor")
        lib.impl("turned", lambda x: x.clone().t(), "CPU")
        library.register_fake("conform_checks::turned", lambda x: x.new_empty(x.shape[::-1]), lib=lib)
        with pytest.raises(Exception, match="Stride mismatch"):
            library.opcheck(torch.ops.conform_checks.turned.default, (torch.ones(2, 3),), test_utils="test_faketensor")


def test_schemas_of_the_same_text_are_equal():
    first, second, other = (
        torch._C.parse_schema(text)
        for text in ("demo::f(Tensor x) -> Tensor", "demo::f(Tensor x)->Tensor", "demo::f(Tensor y) -> Tensor")
    )
    assert first == second
    assert len({first, second, other}) == 2


class TestRecorded:
    """Called as `torch.ops.<library>.<name>(...)`, an operator is recorded as the overload that the arguments mean."""

    def test_by_make_fx_jit_and_export(self):
        from cresset.fx.experimental.proxy_tensor import make_fx

        def f(x):
            return torch.ops.test_library.scaled(x) + 1

        class Model(torch.nn.Module):
            def forward(self, x):
                return f(x)

        graph = make_fx(f)(X).graph
        assert [str(node.target) for node in graph.nodes if node.op == "call_function"] == [
            "test_library.scaled.default",
            "aten.add.Tensor",
        ]
        assert torch.jit.trace(f, X)(2 * X).tolist() == [5.0, 9.0, 13.0]
        assert torch.export.export(Model(), (X,)).module()(2 * X).tolist() == [5.0, 9.0, 13.0]

    def test_by_a_script(self):
        @torch.jit.script
        def f(x: torch.Tensor, twice: bool):
            if twice:
                x = torch.ops.test_library.scaled(x)
            return torch.ops.test_library.scaled(x, by=10.0)

        assert "test_library::scaled" in str(f.graph)
        assert f(X, False).tolist() == [10.0, 20.0, 30.0] and f(X, True).tolist() == [20.0, 40.0, 60.0]
        with pytest.raises(RuntimeError, match="Expected at most 2 arguments but found 3"):

            @torch.jit.script
            def _(x: torch.Tensor):
                return torch.ops.test_library.scaled(x, 1.0, 2.0)

    def test_and_kept_in_an_archive(self, tmp_path):
        @torch.jit.script
        def f(x: torch.Tensor):
            return torch.ops.test_library.scaled(x, 4.0)

        torch.jit.save(f, tmp_path / "f.pt")
        assert torch.jit.load(tmp_path / "f.pt")(X).tolist() == [4.0, 8.0, 12.0]


# ---- kernels without a derivative


@pytest.fixture
def made_of():
    """Defines an operator and its kernel, and gives it."""
    with library._scoped_library("test_fallback", "FRAGMENT") as lib:

        def define(schema, kernel):
            lib.define(schema)
            name = schema.partition("(")[0]
            lib.impl(name, kernel, "CPU")
            return getattr(torch.ops.test_fallback, name)

        yield define


@pytest.fixture
def silent_fallback():
    before = torch._C._get_autograd_fallback_mode()
    torch._C._set_autograd_fallback_mode("nothing")
    yield
    torch._C._set_autograd_fallback_mode(before)


def test_a_kernel_made_of_operators_has_its_gradient_and_a_warning(made_of):
    scaled = made_of("scaled(Tensor x, float by) -> Tensor", lambda x, by: x.sin() * by)
    x = X.clone().requires_grad_()
    with pytest.warns(UserWarning, match="scaled: an autograd kernel was not registered"):
        scaled(x, 2.0).sum().backward()
    assert torch.allclose(x.grad, 2 * X.cos())


def test_a_kernel_that_leaves_autograd_has_no_gradient_and_a_warning(made_of):
    mixed = made_of("mixed(Tensor a, Tensor b) -> (Tensor, Tensor)", lambda a, b: (a.detach() + 1, a * b))
    a, b = X.clone().requires_grad_(), X.clone().requires_grad_()
    outside, inside = mixed(a, b)
    assert "WarnNotImplemented" in type(outside.grad_fn).__name__
    with pytest.warns(UserWarning, match="an autograd kernel was not registered"):
        assert torch.autograd.grad(outside.sum(), (a, b), allow_unused=True) == (None, None)
    with pytest.warns(UserWarning, match="an autograd kernel was not registered"):
        assert torch.equal(torch.autograd.grad(inside.sum(), a)[0], X)


def test_a_kernel_that_writes_is_recorded_by_what_it_calls(made_of):
    double = made_of("double(Tensor(a!) x) -> Tensor(a!)", lambda x: x.mul_(2))
    x = X.clone().requires_grad_()
    base = x.clone()
    double(base[0])
    with pytest.warns(UserWarning, match="double"):
        base.sum().backward()
    expected = torch.ones_like(X)
    expected[0] = 2
    assert torch.equal(x.grad, expected)


def test_the_warning_can_be_left_out_or_be_an_error(made_of, silent_fallback, recwarn):
    outside = made_of("outside(Tensor x) -> Tensor", lambda x: x.detach() + 1)
    inside = made_of("inside(Tensor x) -> Tensor", lambda x: x * 3)
    x = X.clone().requires_grad_()
    assert not outside(x).requires_grad
    inside(x).sum().backward()
    assert torch.equal(x.grad, torch.full_like(X, 3)) and not recwarn
    torch._C._set_autograd_fallback_mode("error")
    with pytest.raises(RuntimeError, match="an autograd kernel was not registered"):
        outside(x).sum().backward()
    with pytest.raises(RuntimeError, match="mode must be one of"):
        torch._C._set_autograd_fallback_mode("shout")


def test_a_derivative_that_is_registered_is_taken(made_of, recwarn):
    cubed = made_of("cubed(Tensor x) -> Tensor", lambda x: x.detach() ** 3)
    library.register_autograd(
        "test_fallback::cubed",
        lambda ctx, grad: grad * 3 * ctx.saved_tensors[0] ** 2,
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
    )
    x = X.clone().requires_grad_()
    cubed(x).sum().backward()
    assert torch.allclose(x.grad, 3 * X**2) and not recwarn
