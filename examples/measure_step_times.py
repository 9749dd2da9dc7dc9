#!/usr/bin/env python3
"""Measure step times of a model on this machine's GPU, as observations for `pollux model fit`.

usage: measure_step_times.py FOLDER [MODEL ...]

Writes FOLDER/MODEL.csv for each model: forward and backward pass of growing micro-batches, with and without
the optimizer's step, medians over repeated steps of random data. The models here are examples (sizes of well-known
architectures, written out with plain torch.nn); to measure your own, add a function that returns the model, a function
that makes a batch, and the optimizer. One GPU, so no gradient exchange: run `pollux model fit` on the result, and let
the job itself observe the rest.
"""

import statistics
import sys
import time
from pathlib import Path

import torch
from torch import nn

WARM_UP, TIMED = 5, 15
LONGEST_STEP = 0.6  # seconds; larger micro-batches are in proportion


class CausalTransformer(nn.Module):
    """About GPT-2 small: 12 layers of width 768, sequences of 512 tokens."""

    def __init__(self, vocabulary=50257, width=768, layers=12, heads=12, length=512):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(torch.zeros(length, width))
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(length))

    def forward(self, tokens):
        hidden = self.tokens(tokens) + self.positions
        return self.head(self.layers(hidden, mask=self.mask, is_causal=True)).flatten(0, 1)


class VisionTransformer(nn.Module):
    """About ViT-S/16 on 224x224 images."""

    def __init__(self, width=384, layers=12, heads=6, classes=1000):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, stride=16)
        self.positions = nn.Parameter(torch.zeros(196, width))
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, classes)

    def forward(self, images):
        hidden = self.patches(images).flatten(2).transpose(1, 2) + self.positions
        return self.head(self.layers(hidden).mean(1))


class Lstm(nn.Module):
    """A two-layer LSTM language model of width 650, sequences of 35 tokens."""

    def __init__(self, vocabulary=10000, width=650):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.layers = nn.LSTM(width, width, 2, batch_first=True)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        return self.head(self.layers(self.tokens(tokens))[0]).flatten(0, 1)


def separable_convolutions(classes=100):
    """About MobileNet on 64x64 images: depthwise and pointwise convolutions."""
    layers, width = [nn.Conv2d(3, 32, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU()], 32
    for out, stride in [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)] + 5 * [(512, 1)] + [(1024, 2)]:
        layers += [nn.Conv2d(width, width, 3, stride=stride, padding=1, groups=width, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
        layers += [nn.Conv2d(width, out, 1, bias=False), nn.BatchNorm2d(out), nn.ReLU()]
        width = out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, classes))


def tokens(vocabulary, length):
    return lambda n, device: (
        torch.randint(vocabulary, (n, length), device=device),
        torch.randint(vocabulary, (n * length,), device=device),
    )


def images(size, classes):
    return lambda n, device: (torch.randn(n, 3, size, size, device=device), torch.randint(classes, (n,), device=device))


def adam(parameters):
    return torch.optim.AdamW(parameters, lr=1e-4)


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=1e-3, momentum=0.9)


# name: (model, batch, optimizer, bf16 autocast)
MODELS = {
    "gpt2-small": (CausalTransformer, tokens(50257, 512), adam, True),
    "vit-small": (VisionTransformer, images(224, 1000), adam, True),
    "lstm": (Lstm, tokens(10000, 35), sgd, False),
    "mobilenet": (separable_convolutions, images(64, 100), sgd, False),
}


def measure(name, device):
    """Rows of (micro-batch, seconds without, seconds with the optimizer's step)."""
    make_model, make_batch, make_optimizer, autocast = MODELS[name]
    torch.manual_seed(0)
    model = make_model().to(device)
    optimizer = make_optimizer(model.parameters())

    def one_pass(batch, step):
        with torch.autocast(device.type, torch.bfloat16, enabled=autocast):
            loss = nn.functional.cross_entropy(model(batch[0]).float(), batch[1])
        loss.backward()
        if step:
            optimizer.step()
        optimizer.zero_grad(set_to_none=False)

    def median_seconds(batch, step):
        times = []
        for index in range(WARM_UP + TIMED):
            torch.cuda.synchronize()
            start = time.perf_counter()
            one_pass(batch, step)
            torch.cuda.synchronize()
            if index >= WARM_UP:
                times.append(time.perf_counter() - start)
        return statistics.median(times)

    size = 1.0
    while True:
        n = round(size)
        try:
            batch = make_batch(n, device)
            accum, optim = median_seconds(batch, False), median_seconds(batch, True)
        except torch.OutOfMemoryError:
            return
        yield n, accum, optim
        if optim > LONGEST_STEP:
            return
        size = max(size * 2**0.5, n + 1)


def main():
    if len(sys.argv) < 2 or not torch.cuda.is_available():
        sys.exit(__doc__ if len(sys.argv) < 2 else "error: torch sees no GPU")
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True
    folder, device = Path(sys.argv[1]), torch.device("cuda")
    folder.mkdir(parents=True, exist_ok=True)
    gpu = torch.cuda.get_device_name(device)
    for name in sys.argv[2:] or MODELS:
        rows = list(measure(name, device))
        precision = "bf16 autocast" if MODELS[name][3] else "float32 with TF32"
        with open(folder / f"{name}.csv", "w") as file:
            print(f"# {name}, {precision}, random data, median of {TIMED} steps; {gpu}, PyTorch {torch.__version__}", file=file)
            print("nodes,replicas,local_bsz,accum_time_s,optim_time_s", file=file)
            for n, accum, optim in rows:
                print(f"1,1,{n},{accum:.6f},{optim:.6f}", file=file)
        print(f"{name}: {len(rows)} micro-batches, up to {rows[-1][0]}")


if __name__ == "__main__":
    main()
