"""Programs in the manner of public repositories that both libraries compile: `make(lib)` gives {name: (make module,
make arguments)}. Used by test_jit_files.py, beside the layers of jit_modules.py.
"""

import math
from enum import Enum
from typing import Any, Dict, Final, List, NamedTuple, Optional, Tuple, Union  # noqa: F401, UP035


class Reduction(Enum):
    SUM = "sum"
    MEAN = "mean"


def make(torch):
    return {**detection(torch), **language(torch), **vision(torch), **recurrent(torch), **language_features(torch)}


def detection(torch):
    nn, Tensor = torch.nn, torch.Tensor

    def box_area(boxes: Tensor) -> Tensor:
        return (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])

    def box_iou(a: Tensor, b: Tensor) -> Tensor:
        top_left = torch.max(a[:, None, :2], b[:, :2])
        bottom_right = torch.min(a[:, None, 2:], b[:, 2:])
        sides = (bottom_right - top_left).clamp(min=0)
        inter = sides[:, :, 0] * sides[:, :, 1]
        return inter / (box_area(a)[:, None] + box_area(b) - inter)

    def suppress(boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
        order = scores.argsort(descending=True)
        keep: List[int] = []
        while order.numel() > 0:
            first = int(order[0])
            keep.append(first)
            if order.numel() == 1:
                break
            overlaps = box_iou(boxes[order[0]].unsqueeze(0), boxes[order[1:]])[0]
            order = order[1:][overlaps <= threshold]
        return torch.tensor(keep, dtype=torch.int64, device=boxes.device)

    class Detections(NamedTuple):
        boxes: Tensor
        scores: Tensor
        labels: Tensor

    class PostProcess(nn.Module):
        threshold: Final[float]

        def __init__(self):
            super().__init__()
            self.threshold = 0.5
            self.score_threshold = 0.2

        def forward(self, boxes: Tensor, logits: Tensor, size: Tuple[int, int]) -> List[Dict[str, Tensor]]:
            results: List[Dict[str, Tensor]] = []
            scores_per_image = torch.softmax(logits, -1)
            for i in range(boxes.size(0)):
                scores, labels = scores_per_image[i].max(dim=-1)
                kept = torch.where(scores > self.score_threshold)[0]
                b = boxes[i][kept].clamp(0)
                b = torch.stack(
                    [
                        b[:, 0].clamp(max=size[1]),
                        b[:, 1].clamp(max=size[0]),
                        b[:, 2].clamp(max=size[1]),
                        b[:, 3].clamp(max=size[0]),
                    ],
                    dim=1,
                )
                index = suppress(b, scores[kept], self.threshold)
                results.append({"boxes": b[index], "scores": scores[kept][index], "labels": labels[kept][index]})
            return results

    class Named(nn.Module):
        def forward(self, boxes: Tensor, scores: Tensor) -> Detections:
            top, index = scores.topk(min(3, scores.shape[0]))
            return Detections(boxes[index], top, torch.zeros_like(index))

    class BoxCoder(nn.Module):
        def __init__(self, weights: Tuple[float, float, float, float] = (10.0, 10.0, 5.0, 5.0)):
            super().__init__()
            self.weights = weights
            self.clip = math.log(1000.0 / 16)

        def forward(self, deltas: Tensor, boxes: List[Tensor]) -> Tensor:
            together = torch.cat(boxes, dim=0)
            counts = [b.size(0) for b in boxes]
            total = 0
            for count in counts:
                total += count
            if total > 0:
                deltas = deltas.reshape(total, -1)
            widths = together[:, 2] - together[:, 0]
            heights = together[:, 3] - together[:, 1]
            centers_x = together[:, 0] + 0.5 * widths
            wx, wy, ww, wh = self.weights
            dx, dw = deltas[:, 0::4] / wx, deltas[:, 2::4] / ww
            dw = torch.clamp(dw, max=self.clip)
            x = dx * widths[:, None] + centers_x[:, None]
            w = torch.exp(dw) * widths[:, None]
            return torch.stack((x - 0.5 * w, x + 0.5 * w * heights[:, None]), dim=2).flatten(1)

    class AnchorGenerator(nn.Module):
        __annotations__ = {"cells": List[torch.Tensor]}

        def __init__(self):
            super().__init__()
            self.sizes = (2, 4)
            self.cells = [torch.tensor([[-s, -s, s, s]]) / 2 for s in self.sizes]

        def grid(self, sizes: List[List[int]], strides: List[List[int]]) -> List[Tensor]:
            anchors = []
            for size, stride, base in zip(sizes, strides, self.cells):
                shifts_x = torch.arange(0, size[1], dtype=torch.int32) * stride[1]
                shifts_y = torch.arange(0, size[0], dtype=torch.int32) * stride[0]
                y, x = torch.meshgrid(shifts_y, shifts_x, indexing="ij")
                shifts = torch.stack((x.reshape(-1), y.reshape(-1), x.reshape(-1), y.reshape(-1)), dim=1)
                anchors.append((shifts.view(-1, 1, 4) + base.view(1, -1, 4)).reshape(-1, 4))
            return anchors

        def forward(self, features: List[Tensor]) -> Tensor:
            sizes = [f.shape[-2:] for f in features]
            strides = [[16 // s[0], 16 // s[1]] for s in sizes]
            return torch.cat(self.grid(sizes, strides))

    boxes = torch.tensor([[0.0, 0.0, 4.0, 4.0], [0.5, 0.5, 4.0, 4.0], [5.0, 5.0, 9.0, 8.0]])
    return {
        "post_process": (
            PostProcess,
            lambda: (boxes.repeat(2, 1, 1), torch.randn(2, 3, 4), (6, 7)),
        ),
        "named_result": (Named, lambda: (boxes, torch.tensor([0.1, 0.9, 0.5]))),
        "box_coder": (BoxCoder, lambda: (torch.randn(3, 4), [boxes[:1], boxes[1:]])),
        "anchors": (AnchorGenerator, lambda: ([torch.ones(1, 1, 2, 2), torch.ones(1, 1, 4, 2)],)),
    }


def language(torch):
    nn, F, Tensor = torch.nn, torch.nn.functional, torch.Tensor

    class Attention(nn.Module):
        scale: Final[float]

        def __init__(self, dim: int = 8, heads: int = 2):
            super().__init__()
            self.heads, self.scale = heads, (dim // heads) ** -0.5
            self.qkv = nn.Linear(dim, dim * 3)
            self.proj = nn.Linear(dim, dim)
            self.register_buffer("mask", torch.tril(torch.ones(16, 16)).view(1, 1, 16, 16), persistent=False)

        def forward(
            self,
            x: Tensor,
            layer_past: Optional[Tuple[Tensor, Tensor]] = None,
            attention_mask: Optional[Tensor] = None,
            use_cache: bool = False,
        ) -> Tuple[Tensor, Optional[Tuple[Tensor, Tensor]]]:
            b, n, d = x.shape
            q, k, v = self.qkv(x).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
            if layer_past is not None:
                past_k, past_v = layer_past
                k, v = torch.cat([past_k, k], dim=-2), torch.cat([past_v, v], dim=-2)
            weights = (q @ k.transpose(-2, -1)) * self.scale
            have = self.mask[:, :, k.size(-2) - n : k.size(-2), : k.size(-2)]
            weights = weights.masked_fill(have == 0, float("-inf"))
            if attention_mask is not None:
                weights = weights + attention_mask[:, None, None, :]
            out = (F.softmax(weights, dim=-1) @ v).transpose(1, 2).reshape(b, n, d)
            present = (k, v) if use_cache else None
            return self.proj(out), present

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.wte, self.wpe = nn.Embedding(11, 8), nn.Embedding(16, 8)
            self.h = nn.ModuleList([Attention() for _ in range(2)])
            self.ln = nn.ModuleDict({"f": nn.LayerNorm(8)})
            self.lm_head = nn.Linear(8, 11, bias=False)
            self.lm_head.weight = self.wte.weight

        def forward(
            self, ids: Tensor, past: Optional[List[Tuple[Tensor, Tensor]]] = None
        ) -> Tuple[Tensor, List[Tensor]]:
            start = 0 if past is None else past[0][0].size(-2)
            x = self.wte(ids) + self.wpe(torch.arange(start, start + ids.shape[1], device=ids.device))
            keys: List[Tensor] = []
            for i, block in enumerate(self.h):
                given: Optional[Tuple[Tensor, Tensor]] = None
                if past is not None:
                    given = past[i]
                y, present = block(x, given, None, True)
                x = x + y
                assert present is not None
                keys.append(present[0])
            for name, norm in self.ln.items():
                x = norm(x)
            return self.lm_head(x), keys

        @torch.jit.export
        def generate(self, ids: Tensor, steps: int = 3) -> Tensor:
            for _ in range(steps):
                logits, _ = self.forward(ids, None)
                ids = torch.cat([ids, logits[:, -1].argmax(-1, keepdim=True)], dim=1)
            return ids

    class ModelOutput(NamedTuple):
        logits: Tensor
        hidden: Optional[Tensor]
        attentions: List[Tensor]

    class Classifier(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.head = nn.Linear(6, 5), nn.Linear(5, 2)

        def forward(self, x: Tensor, output_hidden: bool = False) -> ModelOutput:
            hidden = torch.tanh(self.body(x))
            return ModelOutput(
                logits=self.head(hidden), hidden=hidden if output_hidden else None, attentions=[hidden, hidden * 2]
            )

    class Beam(nn.Module):
        def forward(self, scores: Tensor, width: int) -> List[Tuple[float, List[int]]]:
            beams: List[Tuple[float, List[int]]] = [(0.0, [0])]
            for step in range(scores.size(0)):
                candidates: List[Tuple[float, List[int]]] = []
                for score, tokens in beams:
                    for token in range(scores.size(1)):
                        candidates.append((score + float(scores[step, token].item()), tokens + [token]))
                kept: List[Tuple[float, List[int]]] = []
                while len(kept) < width and len(candidates) > 0:
                    best = 0
                    for i in range(len(candidates)):
                        if candidates[i][0] > candidates[best][0]:
                            best = i
                    kept.append(candidates.pop(best))
                beams = kept
            return beams

    class Vocabulary(nn.Module):
        def __init__(self):
            super().__init__()
            self.ids: Dict[str, int] = {"<unk>": 0, "the": 1, "cat": 2}
            self.unknown = "<unk>"

        def forward(self, text: str) -> Tuple[Tensor, str]:
            words = text.lower().strip().split(" ")
            ids = [self.ids[w] if w in self.ids else self.ids[self.unknown] for w in words]
            inverse: Dict[int, str] = {}
            for word, number in self.ids.items():
                inverse[number] = word
            return torch.tensor(ids), " ".join([inverse[i] for i in ids]) + f" [{len(ids)}]"

    def rotate_half(x: Tensor) -> Tensor:
        a, b = x.chunk(2, dim=-1)
        return torch.cat((-b, a), dim=-1)

    class Rotary(nn.Module):
        inv: Tensor

        def __init__(self, dim: int = 4):
            super().__init__()
            self.register_buffer("inv", 1.0 / (10000 ** (torch.arange(0, dim, 2).float() / dim)))
            self.cached: int = 0

        def forward(self, q: Tensor, offset: Optional[int] = None) -> Tensor:
            first = 0 if offset is None else offset
            t = torch.arange(first, first + q.shape[-2]).type_as(self.inv)
            freqs = torch.einsum("i,j->ij", t, self.inv)
            emb = torch.cat((freqs, freqs), dim=-1)
            return q * emb.cos() + rotate_half(q) * emb.sin()

    return {
        "attention_with_past": (
            Attention,
            lambda: (torch.randn(2, 3, 8), (torch.randn(2, 2, 4, 4), torch.randn(2, 2, 4, 4)), torch.zeros(2, 7), True),
        ),
        "decoder": (Decoder, lambda: (torch.tensor([[1, 2, 3]]),)),
        "output_classes": (Classifier, lambda: (torch.randn(3, 6), True)),
        "beam_search": (Beam, lambda: (torch.randn(3, 4).log_softmax(-1), 2)),
        "vocabulary": (Vocabulary, lambda: ("The Dog  cat",)),
        "rotary": (Rotary, lambda: (torch.randn(2, 5, 4), 3)),
    }


def vision(torch):
    nn, F, Tensor = torch.nn, torch.nn.functional, torch.Tensor

    class SqueezeExcite(nn.Module):
        def __init__(self, channels: int):
            super().__init__()
            self.reduce = nn.Conv2d(channels, max(1, channels // 4), 1)
            self.expand = nn.Conv2d(max(1, channels // 4), channels, 1)

        def forward(self, x: Tensor) -> Tensor:
            scale = F.adaptive_avg_pool2d(x, 1)
            scale = F.hardsigmoid(self.expand(F.relu(self.reduce(scale), inplace=True)), inplace=True)
            return scale * x

    class DenseLayer(nn.Module):
        def __init__(self, inputs: int, growth: int, efficient: bool):
            super().__init__()
            self.norm, self.conv = nn.BatchNorm2d(inputs), nn.Conv2d(inputs, growth, 3, padding=1, bias=False)
            self.efficient = efficient

        @torch.jit.unused
        def checkpointed(self, inputs: List[Tensor]) -> Tensor:
            raise NotImplementedError("in training only")

        @torch.jit._overload_method
        def forward(self, inputs: List[Tensor]) -> Tensor:  # noqa: F811
            pass

        @torch.jit._overload_method
        def forward(self, inputs: Tensor) -> Tensor:  # noqa: F811
            pass

        def forward(self, inputs):  # noqa: F811
            features = [inputs] if isinstance(inputs, Tensor) else inputs
            if self.efficient and self.training:
                return self.checkpointed(features)
            return self.conv(F.relu(self.norm(torch.cat(features, 1))))

    class DenseBlock(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleDict()
            for i in range(2):
                self.layers[f"layer{i + 1}"] = DenseLayer(3 + 2 * i, 2, True)

        def forward(self, x: Tensor) -> Tensor:
            features = [x]
            for name, layer in self.layers.items():
                features.append(layer(features))
            return torch.cat(features, 1)

    class Pyramid(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.ModuleList([nn.Conv2d(c, 4, 1) for c in (2, 3)])
            self.outer = nn.ModuleList([nn.Conv2d(4, 4, 3, padding=1) for _ in range(2)])

        def at(self, x: Tensor, index: int) -> Tensor:
            count = len(self.inner)
            if index < 0:
                index += count
            out = x
            for i, module in enumerate(self.inner):
                if i == index:
                    out = module(x)
            return out

        def forward(self, x: Dict[str, Tensor]) -> Dict[str, Tensor]:
            names, values = list(x.keys()), list(x.values())
            last = self.at(values[-1], -1)
            results = [self.outer[1](last)]
            for index in range(len(values) - 2, -1, -1):
                lateral = self.at(values[index], index)
                last = lateral + F.interpolate(last, size=lateral.shape[-2:], mode="nearest")
                results.insert(0, self.outer[0](last))
            out: Dict[str, Tensor] = {}
            for name, value in zip(names, results):
                out[name] = value
            return out

    class Stem(nn.Module):
        def __init__(self, image_size: int = 8):
            super().__init__()
            self.image_size, self.proj = image_size, nn.Conv2d(3, 4, 4, stride=4)
            self.cls = nn.Parameter(torch.zeros(1, 1, 4))
            self.pos = nn.Parameter(torch.randn(1, 5, 4) * 0.02)

        def forward(self, x: Tensor) -> Tensor:
            n, _, h, w = x.shape
            torch._assert(h == self.image_size, f"Wrong image height! Expected {self.image_size} but got {h}!")
            x = self.proj(x).flatten(2).transpose(1, 2)
            return torch.cat([self.cls.expand(n, -1, -1), x], dim=1) + self.pos

    class Drop(nn.Module):
        def __init__(self, p: float, mode: str = "row"):
            super().__init__()
            self.p, self.mode = p, mode

        def forward(self, x: Tensor) -> Tensor:
            if self.p < 0.0 or self.p > 1.0:
                raise ValueError(f"drop probability has to be between 0 and 1, but got {self.p}")
            if not self.training or self.p == 0.0:
                return x
            survival = 1.0 - self.p
            size = [x.shape[0]] + [1] * (x.ndim - 1) if self.mode == "row" else [1] * x.ndim
            noise = torch.empty(size, dtype=x.dtype, device=x.device).bernoulli_(survival)
            return x * noise.div_(survival)

    class Aux(nn.Module):
        """Two results while training, one else, as classifiers of the Inception family have."""

        def __init__(self):
            super().__init__()
            self.main, self.aux = nn.Linear(6, 2), nn.Linear(6, 2)

        @torch.jit.unused
        def eager_outputs(self, x: Tensor, aux: Optional[Tensor]) -> Tensor:
            return x

        def forward(self, x: Tensor) -> Tuple[Tensor, Optional[Tensor]]:
            aux: Optional[Tensor] = None
            if self.training:
                aux = self.aux(x)
            if torch.jit.is_scripting():
                return self.main(x), aux
            else:
                return self.eager_outputs(self.main(x), aux), aux

    image = lambda: (torch.randn(2, 3, 8, 8),)  # noqa: E731
    return {
        "squeeze_excite": (lambda: SqueezeExcite(3), image),
        "dense_block": (lambda: DenseBlock().eval(), image),
        "pyramid": (Pyramid, lambda: ({"0": torch.randn(1, 2, 6, 6), "1": torch.randn(1, 3, 3, 3)},)),
        "patches": (Stem, image),
        "drop_path": (lambda: Drop(0.3), image),
        "auxiliary_head": (Aux, lambda: (torch.randn(3, 6),)),
    }


def recurrent(torch):
    nn, Tensor = torch.nn, torch.Tensor

    class LSTMState(NamedTuple):
        hx: Tensor
        cx: Tensor

    class Cell(nn.Module):
        def __init__(self, inputs: int, hidden: int):
            super().__init__()
            self.weight_ih = nn.Parameter(torch.randn(4 * hidden, inputs))
            self.weight_hh = nn.Parameter(torch.randn(4 * hidden, hidden))

        def forward(self, x: Tensor, state: Tuple[Tensor, Tensor]) -> Tuple[Tensor, Tuple[Tensor, Tensor]]:
            hx, cx = state
            gates = torch.mm(x, self.weight_ih.t()) + torch.mm(hx, self.weight_hh.t())
            i, f, g, o = gates.chunk(4, 1)
            cy = torch.sigmoid(f) * cx + torch.sigmoid(i) * torch.tanh(g)
            hy = torch.sigmoid(o) * torch.tanh(cy)
            return hy, (hy, cy)

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = Cell(3, 4)

        def forward(self, x: Tensor) -> Tuple[Tensor, LSTMState]:
            state = (x.new_zeros(x.size(1), 4), x.new_zeros(x.size(1), 4))
            inputs = x.unbind(0)
            outputs = torch.jit.annotate(List[Tensor], [])
            i = 0
            while i < len(inputs):
                out, state = self.cell(inputs[i], state)
                outputs += [out]
                i += 1
            return torch.stack(outputs), LSTMState(state[0], state[1])

    class Ensemble(nn.Module):
        def __init__(self):
            super().__init__()
            self.members = nn.ModuleList([nn.Linear(6, 2) for _ in range(3)])

        def forward(self, x: Tensor) -> Tensor:
            futures: List[torch.jit.Future[Tensor]] = []
            for member in self.members:
                futures.append(torch.jit.fork(member, x))
            results: List[Tensor] = []
            for future in futures:
                results.append(torch.jit.wait(future))
            return torch.stack(results).mean(0)

    class Lengths(nn.Module):
        def forward(self, lengths: Tensor, most: Optional[int] = None) -> Tensor:
            if most is None:
                most = int(lengths.max().item())
            steps = torch.arange(most, device=lengths.device)
            return steps.expand(lengths.size(0), most) < lengths.unsqueeze(1)

    class Streaming(nn.Module):
        """State kept in attributes between calls."""

        count: int

        def __init__(self):
            super().__init__()
            self.cache = torch.jit.Attribute(torch.zeros(0), Tensor)
            self.count = 0

        def forward(self, x: Tensor) -> Tuple[Tensor, int]:
            self.cache = torch.cat([self.cache, x])
            self.count += x.numel()
            return self.cache.cumsum(0), self.count

    return {
        "own_lstm": (Layer, lambda: (torch.randn(5, 2, 3),)),
        "ensemble": (Ensemble, lambda: (torch.randn(3, 6),)),
        "padding_mask": (Lengths, lambda: (torch.tensor([2, 4, 1]),)),
        "streaming": (Streaming, lambda: (torch.randn(3),)),
    }


def language_features(torch):
    nn, F, Tensor = torch.nn, torch.nn.functional, torch.Tensor

    @torch.jit.interface
    class Scorer(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            pass

    class Doubles(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x * 2

    class Through(nn.Module):
        scorer: Scorer

        def __init__(self):
            super().__init__()
            self.scorer = Doubles()

        def forward(self, x: Tensor) -> Tensor:
            return self.scorer.forward(x) + 1

    class Reduce(nn.Module):
        def __init__(self, how: Reduction):
            super().__init__()
            self.how = how

        def forward(self, x: Tensor) -> Tensor:
            if self.how == Reduction.SUM:
                return x.sum()
            elif self.how == Reduction.MEAN:
                return x.mean()
            return x

    @torch.jit.script_if_tracing
    def pad_to_even(x: Tensor) -> Tensor:
        if x.size(-1) % 2 == 1:
            x = F.pad(x, [0, 1])
        return x

    class Padded(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return pad_to_even(x) * 2

    @torch.jit.script
    class Running:
        def __init__(self, momentum: float):
            self.momentum = momentum
            self.mean = torch.zeros(1)
            self.history: List[float] = []

        def update(self, x: Tensor) -> Tensor:
            self.mean = self.mean * (1 - self.momentum) + x.mean() * self.momentum
            self.history.append(float(self.mean))
            return self.mean

        @staticmethod
        def scale(x: Tensor) -> Tensor:
            return x / 2

    class UsesClass(nn.Module):
        def forward(self, x: Tensor) -> Tuple[Tensor, int]:
            running = Running(0.5)
            for row in x:
                running.update(row)
            return Running.scale(running.mean), len(running.history)

    class Errors(nn.Module):
        def forward(self, x: Tensor, mode: str = "sum") -> Tensor:
            if x.dim() not in [2, 3]:
                raise RuntimeError(f"expected 2 or 3 dimensions, got {x.dim()}")
            modes = {"sum": 0, "mean": 1}
            if mode not in modes:
                raise ValueError("mode '{}' is not one of {}".format(mode, list(modes.keys())))  # noqa: UP032
            return x.sum(-1) if modes[mode] == 0 else x.mean(-1)

    class Unions(nn.Module):
        def forward(self, x: Union[Tensor, List[Tensor]], scale: Union[int, float] = 2) -> Tensor:
            if isinstance(x, Tensor):
                total = x
            else:
                total = torch.stack(x).sum(0)
            if isinstance(scale, int):
                return total * scale
            return total / float(scale)

    class Slices(nn.Module):
        def forward(self, x: Tensor) -> Tuple[Tensor, List[int], Tensor]:
            y = x.clone()
            y[..., 0] = 1.0
            y[1:, ::2] += 2
            y[0, y[0] > 1.5] = -1
            shape = list(y.shape)
            shape[-1] = shape[-1] // 2
            return y[None, ..., -1], [s * 2 for s in shape], y.view(shape + [2])

    class Nested(nn.Module):
        def forward(self, batch: Dict[str, List[Tensor]], skip: Optional[List[str]] = None) -> Dict[str, Tensor]:
            out: Dict[str, Tensor] = {}
            for key in sorted(batch.keys()):
                if skip is not None and key in skip:
                    continue
                parts = batch[key]
                if len(parts) == 0:
                    break
                out[key] = torch.cat(parts) if len(parts) > 1 else parts[0]
            return out

    class Numbers(nn.Module):
        def forward(self, n: int, x: float) -> Tuple[int, float, bool, str, List[int]]:
            a = n // 3 * 2 - -n % 4
            b = math.sqrt(x) + abs(-x) ** 2 + max(x, 1.0) + round(2.5) + math.floor(x)
            c = n > 2 and not (x < 1 or n == 7)
            return a, b, c, "%d items, %s each" % (n, x), [i * j for i, j in zip(range(n), [3, 2, 1])]  # noqa: UP031

    class WithContext(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(6, 6)

        def forward(self, x: Tensor) -> Tuple[Tensor, Tensor]:
            with torch.no_grad():
                target = self.body(x).detach()
            return F.mse_loss(self.body(x), target + 1), target

    class Hooked(nn.Module):
        def __init__(self):
            super().__init__()
            self.block = nn.Sequential(nn.Linear(6, 6), nn.ReLU())

        @torch.jit.ignore
        def log(self, message: str) -> None:
            raise RuntimeError("an ignored method has no place in a file: " + message)

        @property
        def width(self) -> int:
            return 6

        def forward(self, x: Tensor) -> Tensor:
            if self.training and not torch.jit.is_scripting():
                self.log("forward")
            for layer in self.block:
                x = layer(x)
            return x * self.width

    return {
        "through_an_interface": (Through, lambda: (torch.randn(3),)),
        "enum": (lambda: Reduce(Reduction.MEAN), lambda: (torch.randn(3),)),
        "script_if_tracing": (Padded, lambda: (torch.randn(2, 3),)),
        "script_class": (UsesClass, lambda: (torch.randn(3, 2),)),
        "error_texts": (Errors, lambda: (torch.randn(3, 2), "mean")),
        "unions": (Unions, lambda: ([torch.randn(3), torch.randn(3)], 3)),
        "slices": (Slices, lambda: (torch.randn(3, 4),)),
        "nested_containers": (
            Nested,
            lambda: ({"b": [torch.ones(2), torch.zeros(1)], "a": [torch.ones(1)], "c": [torch.ones(1)]}, ["c"]),
        ),
        "numbers": (Numbers, lambda: (5, 2.5)),
        "contexts": (WithContext, lambda: (torch.randn(3, 6),)),
        "properties": (lambda: Hooked().eval(), lambda: (torch.randn(3, 6),)),
    }
