"""The interpreter: graphs become programs of flat instructions, which compute what the graph says and keep nothing
longer than needed.
"""

import random
import threading
import weakref

import pytest

import cresset
from cresset import _native
from cresset.graph.graph import Graph
from cresset.graph.source import Source, SourceRange
from cresset.graph.types import BoolType, FloatType, IntType, ListType, NoneType, StringType, TensorType, TupleType
from cresset.jit import failures, lowering

FORMAT = _native.program_format()
I, LAST_USE = FORMAT["instructions"], FORMAT["last_use"]  # noqa: E741


def op(graph, kind, *inputs, type=None):
    return graph.insert(kind, inputs, [type or TensorType()]).output()


def run(graph, *args):
    graph.lint()
    return lowering.lower(graph, "f")(*args)


class TestGraphs:
    def test_a_chain_of_operators_gives_their_values(self):
        g = Graph()
        x = g.addInput("x")
        one = g.insertConstant(1, IntType())
        g.registerOutput(op(g, "aten::relu", op(g, "aten::add", x, op(g, "aten::neg", x), one)))
        assert run(g, cresset.tensor([2.0])).tolist() == [0.0]

    def test_a_branch_takes_one_side(self):
        g = Graph()
        c, x = g.addInput("c", BoolType()), g.addInput("x")
        node = g.insert("prim::If", [c], [TensorType()])
        for kind in ("aten::neg", "aten::relu"):
            block = node.addBlock()
            g.setInsertPoint(block)
            block.registerOutput(op(g, kind, x))
        g.setInsertPoint(g.block())
        g.registerOutput(node.output())
        assert run(g, True, cresset.tensor([2.0])).tolist() == [-2.0]
        assert run(g, False, cresset.tensor([2.0])).tolist() == [2.0]

    def test_a_loop_carries_values_that_trade_places(self):
        """a, b = b, a + b: the next round must not see half of the new values."""
        g = Graph()
        n = g.addInput("n", IntType())
        yes, one, zero = (g.insertConstant(v, t) for v, t in ((True, BoolType()), (1, IntType()), (0, IntType())))
        node = g.insert("prim::Loop", [n, yes, zero, one], [IntType(), IntType()])
        block = node.addBlock()
        block.addInputToBlock(IntType(), "i")
        a, b = block.addInputToBlock(IntType(), "a"), block.addInputToBlock(IntType(), "b")
        g.setInsertPoint(block)
        total = op(g, "aten::add", a, b, type=IntType())
        for value in (yes, b, total):
            block.registerOutput(value)
        g.setInsertPoint(g.block())
        g.registerOutput(node.outputsAt(0))
        assert [run(g, n) for n in range(8)] == [0, 1, 1, 2, 3, 5, 8, 13]

    def test_a_while_loop_ends_when_its_condition_does(self):
        g = Graph()
        n = g.addInput("n", IntType())
        most, one, begin = (
            g.insertConstant(2**63 - 1, IntType()),
            g.insertConstant(1, IntType()),
            g.insertConstant(0, IntType()),
        )
        start = op(g, "aten::lt", begin, n, type=BoolType())
        node = g.insert("prim::Loop", [most, start, begin], [IntType()])
        block = node.addBlock()
        block.addInputToBlock(IntType())
        i = block.addInputToBlock(IntType())
        g.setInsertPoint(block)
        after = op(g, "aten::add", i, one, type=IntType())
        block.registerOutput(op(g, "aten::lt", after, n, type=BoolType()))
        block.registerOutput(after)
        g.setInsertPoint(g.block())
        g.registerOutput(node.output())
        assert run(g, 5) == 5 and run(g, 0) == 0 and run(g, -3) == 0

    def test_several_outputs_are_a_tuple(self):
        g = Graph()
        x = g.addInput("x", IntType())
        g.registerOutput(x)
        g.registerOutput(x)
        assert run(g, 3) == (3, 3)

    def test_containers_are_made_and_taken_apart(self):
        g = Graph()
        x, y = g.addInput("x", IntType()), g.addInput("y", IntType())
        pair = op(g, "prim::TupleConstruct", x, y, type=TupleType([IntType(), IntType()]))
        first, second = g.insert("prim::TupleUnpack", [pair], [IntType(), IntType()]).outputs()
        items = op(g, "prim::ListConstruct", second, first, second, type=ListType(IntType()))
        g.registerOutput(items)
        g.registerOutput(op(g, "aten::len", items, type=IntType()))
        assert run(g, 1, 2) == ([2, 1, 2], 3)

    def test_an_operator_whose_results_are_a_list_gives_a_list(self):
        g = Graph()
        x = g.addInput("x")
        two, zero = g.insertConstant(2, IntType()), g.insertConstant(0, IntType())
        g.registerOutput(op(g, "aten::chunk", x, two, zero, type=ListType(TensorType())))
        parts = run(g, cresset.arange(4))
        assert type(parts) is list and [part.tolist() for part in parts] == [[0, 1], [2, 3]]

    def test_a_dtype_is_its_number(self):
        g = Graph()
        x = g.addInput("x")
        no, none = g.insertConstant(False, BoolType()), g.insertConstant(None, NoneType())
        wide = op(g, "aten::to", x, g.insertConstant(7, IntType()), no, no, none)
        wide.node().schema = cresset.ops.aten.to.dtype._schema
        g.registerOutput(wide)
        g.registerOutput(op(g, "prim::dtype", wide, type=IntType()))
        result, number = run(g, cresset.ones(1))
        assert result.dtype is cresset.float64 and number == 7


class TestRandomPrograms:
    """Programs of nested branches and loops, beside the same computed by a plain walk over the graph."""

    def walk(self, block, values):
        for node in block.nodes():
            kind = node.kind()
            given = [values.get(value) for value in node.inputs()]
            if kind == "prim::Constant":
                values[node.output()] = node.attributes["value"]
            elif kind == "prim::If":
                taken = node.blocks()[0 if given[0] else 1]
                self.walk(taken, values)
                results = [values[value] for value in taken.outputs()]
                values.update(zip(node.outputs(), results, strict=True))
            elif kind == "prim::Loop":
                most, go_on, *carried = given
                (body,), count = node.blocks(), 0
                while go_on and count < most:
                    values.update(zip(body.inputs(), [count, *carried], strict=True))
                    self.walk(body, values)
                    go_on, *carried = [values[value] for value in body.outputs()]
                    count += 1
                values.update(zip(node.outputs(), carried, strict=True))
            else:
                a, b = given
                values[node.output()] = {"aten::add": a + b, "aten::sub": a - b, "aten::lt": a < b}[kind]

    def fill(self, rng, graph, block, ints, depth):
        ints = list(ints)
        for _ in range(rng.randint(1, 5)):
            graph.setInsertPoint(block)
            choice = rng.random()
            if choice < 0.6 or depth == 0:
                a, b = rng.choice(ints), rng.choice(ints)
                ints.append(op(graph, rng.choice(["aten::add", "aten::sub"]), a, b, type=IntType()))
            elif choice < 0.8:
                condition = op(graph, "aten::lt", rng.choice(ints), rng.choice(ints), type=BoolType())
                count = rng.randint(0, 3)
                node = graph.insert("prim::If", [condition], [IntType()] * count)
                for _ in range(2):
                    inner = node.addBlock()
                    made = self.fill(rng, graph, inner, ints, depth - 1)
                    for _ in range(count):
                        inner.registerOutput(rng.choice(made))
                ints += node.outputs()
            else:
                most = graph.insertConstant(rng.randint(0, 3), IntType())
                begin = (
                    graph.insertConstant(True, BoolType())
                    if rng.random() < 0.5
                    else op(graph, "aten::lt", rng.choice(ints), rng.choice(ints), type=BoolType())
                )
                count = rng.randint(0, 3)
                node = graph.insert(
                    "prim::Loop", [most, begin, *(rng.choice(ints) for _ in range(count))], [IntType()] * count
                )
                inner = node.addBlock()
                inside = [inner.addInputToBlock(IntType()) for _ in range(count + 1)]
                made = self.fill(rng, graph, inner, ints + inside, depth - 1)
                graph.setInsertPoint(inner)
                inner.registerOutput(
                    graph.insertConstant(True, BoolType())
                    if rng.random() < 0.5
                    else op(graph, "aten::lt", rng.choice(made), rng.choice(made), type=BoolType())
                )
                for _ in range(count):
                    inner.registerOutput(rng.choice(made))
                ints += node.outputs()
        graph.setInsertPoint(block)
        return ints

    @pytest.mark.parametrize("seed", range(300))
    def test_nested_control_flow_agrees_with_a_plain_walk(self, seed):
        rng = random.Random(seed)
        graph = Graph()
        inputs = [graph.addInput(None, IntType()) for _ in range(3)]
        made = self.fill(rng, graph, graph.block(), inputs, 3)
        for _ in range(3):
            graph.registerOutput(rng.choice(made))
        program = lowering.lower(graph, "f")
        for _ in range(3):
            args = [rng.randint(-5, 5) for _ in inputs]
            values = dict(zip(graph.inputs(), args, strict=True))
            self.walk(graph.block(), values)
            assert program(*args) == tuple(values[value] for value in graph.outputs())


class TestMemory:
    def test_a_value_is_freed_after_its_last_use(self):
        """What the first call made, and the second read, is gone when the third runs."""
        seen, alive = [], []

        def make():
            return cresset.ones(1)

        def note(x):
            alive.append(weakref.ref(x))
            return x * 1

        def look(x):
            seen.append(alive[0]() is not None)
            return x

        calls = [(1, 0, []), (0, 1, [1 | LAST_USE]), (1, 2, [0 | LAST_USE])]
        code = [n for to, f, args in calls for n in (I["CALL"], to, ~f, FORMAT["nothing"], len(args), *args)]
        _native.Program("f", 2, 0, [make, note, look], [*code, I["RETURN"], 1], [])()
        assert seen == [False]

    def test_what_a_branch_does_not_read_is_freed_in_it(self):
        g = Graph()
        c, x = g.addInput("c", BoolType()), g.addInput("x")
        made = op(g, "aten::neg", x)
        node = g.insert("prim::If", [c], [TensorType()])
        for used in (made, None):
            block = node.addBlock()
            g.setInsertPoint(block)
            block.registerOutput(op(g, "aten::relu", used) if used is not None else g.insertConstant(None, NoneType()))
        g.setInsertPoint(g.block())
        g.registerOutput(node.output())
        code = lowering.lower(g, "f").code
        assert I["RELEASE"] in code

    def test_running_leaves_no_references_behind(self):
        g = Graph()
        x = g.addInput("x")
        g.registerOutput(op(g, "aten::relu", op(g, "aten::neg", x)))
        program = lowering.lower(g, "f")
        argument = cresset.ones(2)
        before = weakref.ref(program(argument))
        assert before() is None


class TestTemporariesThatAreWrittenOver:
    """A result takes the memory of an operand that nobody else sees, and nothing else about it can be noticed."""

    def test_a_temporary_gives_its_memory_to_the_result(self):
        def chain(x):
            return (x + 1).sqrt().sigmoid() * 2

        x, most = cresset.ones(1 << 20), []
        for run in (chain, cresset.jit.script(chain)):
            before = _native.host_memory_statistics()["in_use"]
            _native.reset_peak_host_memory()
            run(x)
            most.append(_native.host_memory_statistics()["peak"] - before)
        assert most == [8 << 20, 4 << 20]

    @pytest.mark.parametrize(
        "x",
        [
            cresset.tensor([1.0, 4.0]),
            cresset.tensor([1.0, 4.0], dtype=cresset.float16),
            cresset.tensor([1, 4]),
            cresset.tensor(2.0),
            cresset.tensor([]),
            cresset.tensor([[1.0, 2.0], [3.0, 4.0]]).t(),
            cresset.tensor([1 + 2j]),
        ],
        ids=str,
    )
    def test_every_dtype_and_layout_gives_eagers_result(self, x):
        def chain(x):
            t = x + x
            t = (t * 2 - x) / 3
            return (t * t).sqrt().sigmoid() + 1.5

        got, want = cresset.jit.script(chain)(x), chain(x)
        assert cresset.equal(got, want) and (got.dtype, got.stride()) == (want.dtype, want.stride())
        assert got._version == 0

    def test_an_operand_of_another_shape_or_dtype_makes_a_new_result(self):
        def spread(x, y):
            return (x + 1) * y

        x = cresset.ones(3)
        for y in (cresset.ones(2, 3), cresset.ones(3, dtype=cresset.float64), cresset.ones(3, dtype=cresset.complex64)):
            got, want = cresset.jit.script(spread)(x, y), spread(x, y)
            assert cresset.equal(got, want) and got.dtype == want.dtype

    def test_what_somebody_keeps_is_not_written_over(self):
        kept = []

        @cresset.jit.ignore
        def keep(t: cresset.Tensor) -> None:
            kept.append(t)

        def f(x):
            t = x + 1
            keep(t)
            u = t * 2
            part = u[0:1]
            return (u * 3).relu(), part

        result, part = cresset.jit.script(f)(cresset.ones(2))
        assert kept[0].tolist() == [2.0, 2.0]
        assert part.tolist() == [4.0]
        assert result.tolist() == [12.0, 12.0]

    def test_arguments_and_attributes_are_not_written_over(self):
        class Scale(cresset.nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("factor", cresset.tensor([2.0]))

            def forward(self, x):
                return (self.factor * x).sigmoid() + self.factor.relu() + x.relu()

        x, scripted = cresset.ones(1), cresset.jit.script(Scale())
        scripted(x)
        assert x.tolist() == [1.0] and scripted.factor.tolist() == [2.0]

    def test_gradients_find_what_they_saved(self):
        def f(x, w):
            t = x + 1  # needs no gradient, but the product's derivative reads it
            return ((t * w) * w).sigmoid().sum()

        for library in (f, cresset.jit.script(f)):
            w = cresset.tensor([0.5, -0.5], requires_grad=True)
            library(cresset.ones(2), w).backward()
            if library is f:
                want = w.grad.clone()
        assert cresset.equal(w.grad, want)

    def test_a_mode_sees_the_operators_of_the_program(self):
        seen = []

        class Names(cresset.overrides.TorchFunctionMode):
            def __torch_function__(self, function, types, args=(), kwargs=None):
                seen.append(function.__name__)
                return function(*args, **(kwargs or {}))

        def f(x):
            return (x + 1).relu().sqrt()

        scripted, x = cresset.jit.script(f), cresset.ones(1)
        with Names():
            scripted(x)
        assert seen == ["add", "relu", "sqrt"]

    def test_results_of_inference_mode_are_marked(self):
        def f(x):
            return (x + 1).relu() * 2

        with cresset.inference_mode():
            assert cresset.jit.script(f)(cresset.ones(1)).is_inference()

    def test_forward_mode_and_vmap_go_through(self):
        def f(x):
            return ((x + 1) * 2).sqrt()

        scripted = cresset.jit.script(f)
        x = cresset.tensor([1.0, 7.0])
        assert cresset.func.vmap(scripted)(x).tolist() == [2.0, 4.0]
        assert cresset.func.jvp(scripted, (x,), (cresset.ones(2),))[1].tolist() == [0.5, 0.25]


class TestFailures:
    def failing(self):
        g = Graph()
        x, y = g.addInput("x"), g.addInput("y")
        text = "def f(x, y):\n    return x @ y\n"
        g.place = SourceRange(Source(text, "model.py", 10), 2, 11, 2, 16)
        g.registerOutput(op(g, "aten::matmul", x, y))
        return lowering.lower(g, "f")

    def test_an_operators_error_names_the_line(self):
        with pytest.raises(RuntimeError) as caught:
            self.failing()(cresset.ones(2, 3), cresset.ones(2, 3))
        text = str(caught.value)
        assert text.startswith(failures.HEADER) and 'File "model.py", line 11, in f' in text
        assert "return x @ y\n               ~~~~~ <--- HERE" in text

    def test_a_program_that_raises_raises_torch_jit_error(self):
        g = Graph()
        g.insert(
            "prim::RaiseException",
            [g.insertConstant("too small", StringType()), g.insertConstant("builtins.ValueError", StringType())],
            0,
        )
        g.registerOutput(g.insertConstant(None, NoneType()))
        with pytest.raises(failures.Error, match="builtins.ValueError: too small"):
            run(g)

    def test_an_interrupt_passes_as_it_is(self):
        def interrupt():
            raise KeyboardInterrupt

        program = _native.Program("f", 1, 0, [interrupt], [I["CALL"], 0, ~0, FORMAT["nothing"], 0, I["RETURN"], 0], [])
        with pytest.raises(KeyboardInterrupt):
            program()

    def test_a_program_that_calls_itself_forever_is_a_recursion_error(self):
        holder = []
        program = _native.Program(
            "f", 1, 0, [lambda: holder[0]()], [I["CALL"], 0, ~0, FORMAT["nothing"], 0, I["RETURN"], 0], []
        )
        holder.append(program)
        with pytest.raises(RuntimeError, match="maximum recursion depth"):
            program()

    def test_the_wrong_number_of_arguments_is_refused(self):
        with pytest.raises(TypeError, match="expected 2 arguments, got 1"):
            self.failing()(cresset.ones(1))


@pytest.mark.parametrize(
    "code",
    [
        [99],
        [I["MOVE"], 5, 0, I["RETURN"], 0],
        [I["MOVE"], 0, 7, I["RETURN"], 0],
        [I["MOVE"], 0, ~9, I["RETURN"], 0],
        [I["MOVE"], 0],
        [I["MOVE"], 0, 0],
        [I["JUMP"], 1, I["RETURN"], 0],
        [I["CALL"], 0, ~0, FORMAT["nothing"], 1000, 0, I["RETURN"], 0],
        [I["BINARY"], 0, 99, 0, 0, I["RETURN"], 0],
    ],
)
def test_code_that_reaches_outside_of_the_program_is_refused(code):
    with pytest.raises(ValueError, match="Program"):
        _native.Program("f", 1, 1, [None], code, [])


def test_other_threads_run_while_a_program_loops():
    g = Graph()
    n = g.addInput("n", IntType())
    yes, zero = g.insertConstant(True, BoolType()), g.insertConstant(0.5, FloatType())
    node = g.insert("prim::Loop", [n, yes, zero], [FloatType()])
    block = node.addBlock()
    block.addInputToBlock(IntType())
    carried = block.addInputToBlock(FloatType())
    g.setInsertPoint(block)
    block.registerOutput(yes)
    block.registerOutput(op(g, "aten::mul", carried, zero, type=FloatType()))
    g.setInsertPoint(g.block())
    g.registerOutput(node.output())
    program, began, counted, stop = lowering.lower(g, "f"), threading.Event(), [0], threading.Event()

    def count():
        began.set()
        while not stop.is_set():
            counted[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    began.wait()
    before = counted[0]
    program(10_000_000)  # on a busy machine the other thread may wait for a core as long as a tenth of that takes
    during = counted[0] - before
    stop.set()
    thread.join()
    assert during > 0
