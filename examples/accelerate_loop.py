"""The same front in a loop with Hugging Face Accelerate: ``pip install accelerate``.

A manifold is an ``nn.Module`` whose forward takes ``(x, alpha)``, so ``prepare`` wraps it like any
other. Start it with ``accelerate launch examples/accelerate_loop.py`` for several devices.
"""

import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader

import lorpman as lp
from plain_loop import make_data, make_model


def main(epochs=30, accelerator=None):
    accelerator = accelerator or Accelerator()
    train_data, test_data = make_data()
    plain, tasks = make_model()
    objective = lp.Linear() + lp.Orthogonality()
    model, optimizer, loader = accelerator.prepare(
        plain,
        torch.optim.Adam(plain.parameters(), 1e-2),
        DataLoader(train_data, batch_size=50, shuffle=True),
    )
    for _ in range(epochs):
        for x, y in loader:
            alphas = lp.dirichlet(2, 4).to(accelerator.device)
            outputs = model(x, alphas)
            rows = [[task.loss(out[j], y[:, i])
                     for i, (task, out) in enumerate(zip(tasks, outputs, strict=True))]
                    for j in range(4)]  # fmt: skip
            losses = torch.stack([torch.stack(row) for row in rows])
            optimizer.zero_grad()
            accelerator.backward(objective(alphas, losses, plain))
            optimizer.step()
    front = lp.evaluate(plain, tasks, DataLoader(test_data, batch_size=300))
    accelerator.print(f"hypervolume {front.hypervolume():.3f}")
    return front


if __name__ == "__main__":
    main()
