"""A loop of one's own: what changes when one network becomes a front of networks.

Run it with ``python examples/plain_loop.py``; with ``--explore`` the front opens on a web page.
"""

import sys

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

import lorpman as lp


def make_data(n=600):
    """Ten numbers; two yes-or-no questions about them that want different features."""
    torch.manual_seed(0)
    x = torch.randn(n, 10)
    y = torch.stack([x[:, 0] * x[:, 1] > 0, x[:, 0] + x[:, 2] ** 2 > 1], 1).long()
    return TensorDataset(x[: n // 2], y[: n // 2]), TensorDataset(x[n // 2 :], y[n // 2 :])


def make_model():
    """A narrow shared part, for which the tasks compete, and the tasks."""
    bottom = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 6), nn.ReLU())
    network = lp.SharedBottom(bottom, [nn.Linear(6, 2), nn.Linear(6, 2)])
    tasks = [
        lp.Task("same sign", F.cross_entropy, lp.accuracy, classes=["no", "yes"]),
        lp.Task("above the curve", F.cross_entropy, lp.accuracy, classes=["no", "yes"]),
    ]
    return lp.LowRank(network, num_tasks=2, rank=4), tasks


def train(model, tasks, loader, epochs=30, freeze_epoch=20):
    objective = lp.Linear() + lp.Orthogonality()
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for epoch in range(epochs):
        if epoch == freeze_epoch:
            model.freeze()
        for x, y in loader:
            alphas = lp.dirichlet(2, 4)  # four preferences per step
            outputs = model(x, alphas)  # what the network returns, each tensor led by four
            losses = torch.stack(
                [torch.stack([task.loss(out[j], y[:, i])
                              for i, (task, out) in enumerate(zip(tasks, outputs, strict=True))])
                 for j in range(4)]
            )  # fmt: skip
            optimizer.zero_grad()
            objective(alphas, losses, model).backward()
            optimizer.step()


def main(epochs=30):
    train_data, test_data = make_data()
    model, tasks = make_model()
    train(model, tasks, DataLoader(train_data, batch_size=50, shuffle=True), epochs)
    front = lp.evaluate(model, tasks, DataLoader(test_data, batch_size=300))
    print(f"hypervolume {front.hypervolume():.3f}")
    if "--explore" in sys.argv:
        lp.explore(model, tasks=tasks, data=test_data)
    return front


if __name__ == "__main__":
    main()
