"""A small model trained with the AdaptDL client as it comes from PyPI: nothing in here knows of Pollux.

The data are made up, with labels by a rule, and each sample costs as long as --pace says, as if the model were larger.
"""

import argparse
import time

import adaptdl.env
import adaptdl.torch as adl
import torch
from torch.utils.data import TensorDataset


def data(n_samples):
    """Points in 16 dimensions; the label is which of four hidden directions is nearest."""
    chance = torch.Generator().manual_seed(1)
    points = torch.randn(n_samples, 16, generator=chance)
    directions = torch.randn(16, 4, generator=chance)
    return TensorDataset(points, (points @ directions).argmax(dim=1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--samples", type=int, default=1024)
    parser.add_argument("--pace", type=float, default=0.001, help="seconds each sample costs")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)

    adl.init_process_group("gloo")
    rank, replicas = adaptdl.env.replica_rank(), adaptdl.env.num_replicas()
    loader = adl.AdaptiveDataLoader(data(args.samples), batch_size=32, shuffle=True, drop_last=True)
    loader.autoscale_batch_size(256, local_bsz_bounds=(8, 128), gradient_accumulation=True)
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    model = adl.AdaptiveDataParallel(model, optimizer)
    print(f"replica {rank} of {replicas}, restart {adaptdl.env.num_restarts()}", flush=True)

    for epoch in adl.remaining_epochs_until(args.epochs):
        counted = adl.Accumulator()
        for points, labels in loader:
            time.sleep(args.pace * len(points))
            optimizer.zero_grad()
            scores = model(points)
            loss = torch.nn.functional.cross_entropy(scores, labels)
            loss.backward()
            optimizer.step()
            counted["loss"] += loss.item() * len(points)
            counted["right"] += (scores.argmax(dim=1) == labels).sum().item()
            counted["seen"] += len(points)
            batch = loader.current_batch_size
        with counted.synchronized():
            loss, right = counted["loss"] / counted["seen"], counted["right"] / counted["seen"]
        if rank == 0:
            print(f"epoch {epoch}: replicas {replicas}, batch {batch}, loss {loss:.3f}, right {right:.3f}", flush=True)
    if rank == 0:
        print("done", flush=True)


if __name__ == "__main__":
    main()
