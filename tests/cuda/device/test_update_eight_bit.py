"""Adam8bit and AdamW8bit on CUDA: what they do on the CPU."""

import pytest

import cresset as torch


def stepped(device, name, dtype, count, first, steps=3):
    """The parameter and its state after some steps; it begins `first` elements into its memory."""
    generator = torch.Generator().manual_seed(1)
    memory = torch.randn(count + first, generator=generator).to(dtype).to(device)
    param = torch.nn.Parameter(memory[first:])
    optimizer = getattr(torch.optim, name)([param], lr=0.01, weight_decay=0.1, min_8bit_size=0)
    for _ in range(steps):
        grad = torch.randn(count, generator=generator) * torch.logspace(-4, 0, count)
        param.grad = grad.to(device=device, dtype=dtype)
        optimizer.step()
    return param.detach().cpu(), {name: torch.as_tensor(value).cpu() for name, value in optimizer.state[param].items()}


def mean_of(state, k):
    codes, largest = state[f"state{k}"], state[f"absmax{k}"].repeat_interleave(256)
    return state[f"qmap{k}"][codes.int()] * largest[: codes.numel()]


@pytest.mark.parametrize("name", ["Adam8bit", "AdamW8bit"])
@pytest.mark.parametrize(
    "dtype, count, first",
    [(torch.float32, 1024, 0), (torch.float32, 1023, 0), (torch.float32, 1024, 1), (torch.bfloat16, 600, 0),
     (torch.float16, 300, 0)],
)  # fmt: skip
def test_steps_are_those_of_the_cpu(cuda, name, dtype, count, first):
    expected, kept = stepped("cpu", name, dtype, count, first)
    found, state = stepped("cuda", name, dtype, count, first)
    torch.testing.assert_close(found, expected, rtol=1e-3 if dtype == torch.float32 else 2e-2, atol=1e-4)
    for k in (1, 2):  # a tie may fall to either side
        largest = kept[f"absmax{k}"].repeat_interleave(256)[:count]
        assert ((mean_of(state, k) - mean_of(kept, k)).abs() <= 0.02 * largest).all()
        torch.testing.assert_close(state[f"absmax{k}"], kept[f"absmax{k}"], rtol=2e-2, atol=1e-8)


def test_zeros_and_nans(cuda):
    param = torch.nn.Parameter(torch.ones(600, device="cuda"))
    optimizer = torch.optim.Adam8bit([param], lr=0.1, min_8bit_size=0)
    param.grad = torch.zeros_like(param)
    optimizer.step()
    assert (param == 1).all() and not optimizer.state[param]["absmax1"].any()
    param.grad[0] = float("nan")
    optimizer.step()
    assert param[0].isnan() and not param[256:].isnan().any()


def test_a_graph_is_refused(cuda):
    param = torch.nn.Parameter(torch.ones(5000, device="cuda"))
    optimizer = torch.optim.AdamW8bit([param])
    param.grad = torch.ones_like(param)
    optimizer.step()
    with pytest.raises(RuntimeError, match="cannot be recorded"), torch.cuda.graph(torch.cuda.CUDAGraph()):
        optimizer.step()
