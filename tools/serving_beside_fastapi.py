"""Requests a second of `cresset serve` and of a plain FastAPI + PyTorch handler, on the digits CNN and a small GPT.

    python tools/serving_beside_fastapi.py [SECONDS]

needs fastapi and PyTorch beside cresset[serve]. Both servers have the same models with the same sizes, are asked by the
same client (`cresset bench-serve`, 32 connections) with JSON, one after the other, and answer with JSON.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import time
import urllib.request

MODELS = '''
def digits(torch):
    nn = torch.nn
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(),
        nn.Conv2d(32, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(64, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Dropout(0.3), nn.Linear(64 * 2 * 2, 10),
    ).eval()


def gpt(torch, letters=100, context=64, width=128, layers=3, heads=4):
    """The scores of the next letter."""
    nn, F = torch.nn, torch.nn.functional
    torch.manual_seed(0)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention_norm, self.hidden_norm = nn.LayerNorm(width), nn.LayerNorm(width)
            self.split, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.hidden = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x):
            batch, length, _ = x.shape
            parts = self.split(self.attention_norm(x)).view(batch, length, 3, heads, width // heads)
            queries, keys, values = parts.permute(2, 0, 3, 1, 4).unbind(0)
            seen = F.scaled_dot_product_attention(queries, keys, values, is_causal=True)
            x = x + self.out(seen.transpose(1, 2).reshape(batch, length, width))
            return x + self.hidden(self.hidden_norm(x))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.letters, self.places = nn.Embedding(letters, width), nn.Embedding(context, width)
            self.blocks = nn.Sequential(*(Block() for _ in range(layers)))
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, letters)

        def forward(self, ids):
            x = self.letters(ids) + self.places.weight[: ids.shape[1]]
            return self.head(self.norm(self.blocks(x))[:, -1])

    return GPT().eval()


def served_digits():
    import cresset

    return digits(cresset), (cresset.zeros(1, 1, 8, 8),)


def served_gpt():
    import cresset

    return gpt(cresset), (cresset.zeros(1, 64, dtype=cresset.int64),)
'''

FASTAPI = """
import sys

import models
import torch
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

digits, gpt = models.digits(torch), models.gpt(torch)
app = FastAPI()


class Pictures(BaseModel):
    data: list[list[list[list[float]]]]


class Letters(BaseModel):
    data: list[list[int]]


@app.post("/digits")
def read(item: Pictures):
    with torch.no_grad():
        return {"scores": digits(torch.tensor(item.data)).tolist()}


@app.post("/gpt")
def write(item: Letters):
    with torch.no_grad():
        return {"scores": gpt(torch.tensor(item.data)).tolist()}


uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="error")
"""


def wait_for(url):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return
        except OSError:
            time.sleep(0.1)
    raise SystemExit(f"{url} does not answer")


def measure(model, port, seconds, *more):
    command = [sys.executable, "-m", "cresset", "bench-serve", model, "--url", f"http://127.0.0.1:{port}", "--json"]
    done = subprocess.run([*command, "--seconds", str(seconds), *more], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def main():
    seconds, draw = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0, random.Random(0)
    rows = [[round(draw.random(), 4) for _ in range(8)] for _ in range(8)]
    bodies = {"digits": [[rows]], "gpt": [[draw.randrange(100) for _ in range(64)]]}
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (("models.py", MODELS), ("beside.py", FASTAPI)):
            with open(os.path.join(folder, name), "w") as file:
                file.write(text)
        sources = [f"{name}={folder}/models.py:served_{name}" for name in bodies]
        ours = [sys.executable, "-m", "cresset", "serve", *sources, "--batch", "32", "--port", "8171"]
        theirs = [sys.executable, os.path.join(folder, "beside.py"), "8172"]
        for who, command, port, page in (
            ("cresset", ours, 8171, "/v2/health/ready"),
            ("FastAPI", theirs, 8172, "/docs"),
        ):
            process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
            try:
                wait_for(f"http://127.0.0.1:{port}{page}")
                for name, data in bodies.items():
                    more = []
                    if who == "FastAPI":
                        body = os.path.join(folder, f"{name}.json")
                        with open(body, "w") as file:
                            json.dump({"data": data}, file)
                        more = ["--path", f"/{name}", "--body", body]
                    found[who, name] = measure(name, port, seconds, *more)
            finally:
                process.terminate()
                process.wait(30)
    print("| model | | one at a time, ms (p50) | at full load, a second | p99, ms |\n|---|---|---|---|---|")
    for name in bodies:
        for who in ("cresset", "FastAPI"):
            alone, full = found[who, name]["one at a time"], found[who, name]["as fast as it goes"]
            times = (alone["milliseconds"]["p50"], full["per_second"], full["milliseconds"]["p99"])
            print(f"| {name} | {who} | {times[0]:.2f} | {times[1]:.0f} | {times[2]:.1f} |")
        rates = [found[who, name]["as fast as it goes"]["per_second"] for who in ("cresset", "FastAPI")]
        print(f"| {name} | times as many | | {rates[0] / rates[1]:.1f} | |")


if __name__ == "__main__":
    main()
