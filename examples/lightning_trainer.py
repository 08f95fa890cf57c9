"""The same front, trained by PyTorch Lightning: ``pip install 'lorpman[lightning]'``."""

import pytorch_lightning as pl
import torch
from torch.utils.data import DataLoader

import lorpman as lp
from lorpman.integrations.lightning import ParetoModule
from plain_loop import make_data, make_model


def main(epochs=30, **trainer_options):
    train_data, test_data = make_data()
    model, tasks = make_model()
    module = ParetoModule(
        model,
        tasks,
        objective=lp.Linear() + lp.Orthogonality(),
        optimizer=lambda parameters: torch.optim.Adam(parameters, 1e-2),
        freeze_epoch=epochs * 2 // 3,
    )
    trainer = pl.Trainer(max_epochs=epochs, accelerator="cpu", **trainer_options)
    trainer.fit(
        module,
        DataLoader(train_data, batch_size=50, shuffle=True),
        DataLoader(test_data, batch_size=300),
    )
    print(f"hypervolume {trainer.callback_metrics['hypervolume']:.3f}")
    return module


if __name__ == "__main__":
    main()
