"""nn.parallel and grouped_mm beside PyTorch's, on a machine without GPU."""

import pytest

torch = pytest.importorskip("torch")


@pytest.mark.parametrize(
    "call",
    [
        "scatter((3, 'a', {'k': 1}, [1]), [0, 1])", "scatter((3,), [])", "scatter([], [0, 1])",
        "scatter(torch.ones(2), ['cpu'])",
        "gather([torch.ones(2)] * 2, 'cpu')", "gather([None, None], 0)", "gather([{'a': None}] * 2, 0)",
        "gather([{'a': None}, {}], 0)",
        "gather([(None, None)] * 2, 0)", "replicate(torch.nn.Linear(1, 1), [0])",
        "replicate(torch.nn.Linear(1, 1), ['cpu'])",
        "replicate(torch.nn.Linear(1, 1), [])", "replicate(torch.nn.Sequential(torch.nn.ReLU()), [0, 1])",
        "parallel_apply([torch.nn.ReLU()] * 2, [torch.ones(1)] * 2)",
        "parallel_apply([torch.nn.ReLU()] * 2, [torch.ones(1)])",
        "parallel_apply([torch.nn.ReLU()], [torch.ones(1)], devices=['cpu'])",
        "data_parallel(torch.nn.ReLU(), torch.ones(1))",
        "data_parallel(torch.nn.ReLU(), torch.ones(1), [0])", "DataParallel(torch.nn.ReLU(), [0, 1]).device_ids",
        "DataParallel(torch.nn.ReLU())(torch.tensor([-1.0, 2.0]))", "DataParallel(torch.nn.ReLU())",
        "DataParallel(torch.nn.ReLU()).scatter((1,), {}, [0])",
    ],
)  # fmt: skip
def test_the_same_without_gpu(agree, call):
    if torch.accelerator.is_available():
        pytest.skip("about machines without GPU")
    agree(f"torch.nn.parallel.{call}")


@pytest.mark.parametrize("a", [(16, 8), (3, 16, 8)])
@pytest.mark.parametrize("b", [(8, 24), (3, 8, 24)])
def test_grouped_products_agree(agree, a, b):
    ends = {(2, 2): [3, 8], (2, 3): [4, 10, 16], (3, 2): [4, 12, 24], (3, 3): None}[len(a), len(b)]
    offs = f", offs=torch.tensor({ends}, dtype=torch.int32)" if ends else ""
    agree(
        f"a, b = (torch.arange(float(torch.Size(s).numel())).reshape(s) % 7 for s in ({a}, {b}))\n"
        f"torch.nn.functional.grouped_mm(a, b{offs})"
    )
