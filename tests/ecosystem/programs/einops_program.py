"""einops: shapes by names, as a function and as a layer."""

import einops
import torch
from einops.layers.torch import Rearrange

x = torch.arange(6).reshape(2, 3)
assert einops.rearrange(x, "a b -> b a").tolist() == x.t().tolist()
assert einops.reduce(x.float(), "a b -> a", "mean").tolist() == [1.0, 4.0]
assert torch.nn.Sequential(Rearrange("b (h w) -> b h w", h=2))(torch.ones(1, 6)).shape == (1, 2, 3)
