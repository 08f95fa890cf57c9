"""A recommender: will somebody open a film's page, and how will they rate it?

Inputs are a dataclass of indices, the network an embedding per person and per film, and most people
rate few of the films they open: those ratings are NaN, and count in no loss and no score. The data
is drawn from hidden tastes, with a fixed seed; popular films are opened more and loved less, so
the two tasks pull apart.

    lorpman train examples/ratings.py
    lorpman select runs/ratings-lorpman-0 --best stars --problem examples/ratings.py
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import Dataset

import lorpman as lp

PEOPLE, FILMS, SAMPLES = 200, 80, 6000


@dataclass
class Visit:
    """Who looks at what: a number each, or a tensor ``[n]`` of them in a batch."""

    person: Tensor
    film: Tensor


class Visits(Dataset):
    """Visits; whether the page was opened, and the stars, NaN where there are none."""

    def __init__(self, person: Tensor, film: Tensor, opened: Tensor, stars: Tensor) -> None:
        self.columns = person, film, opened, stars

    def __len__(self) -> int:
        return len(self.columns[0])

    def __getitem__(self, index: int) -> tuple[Visit, dict[str, Tensor]]:
        person, film, opened, stars = (column[index] for column in self.columns)
        return Visit(person, film), {"open": opened, "stars": stars}


def load() -> lp.Splits:
    """Visits drawn from hidden tastes."""
    generator = torch.Generator().manual_seed(0)
    taste = torch.randn(PEOPLE, 3, generator=generator)
    content = torch.randn(FILMS, 3, generator=generator)
    popular = torch.randn(FILMS, generator=generator)
    person = torch.randint(PEOPLE, (SAMPLES,), generator=generator)
    film = torch.randint(FILMS, (SAMPLES,), generator=generator)
    match = (taste[person] * content[film]).sum(1)
    noise = torch.randn(SAMPLES, generator=generator)
    opened = (0.5 * match + 1.5 * popular[film] + noise > 0).long()
    stars = (3 + 0.6 * match - 0.5 * popular[film]).clamp(1, 5)
    stars[(opened == 0) | (torch.rand(SAMPLES, generator=generator) < 0.5)] = float("nan")
    columns = person, film, opened, stars[:, None]
    parts = torch.arange(SAMPLES).split([4000, 1000, 1000])
    return lp.Splits(*(Visits(*(column[rows] for column in columns)) for rows in parts))


class Recommender(nn.Module):
    """Embeddings of both sides, a layer that both tasks share, and a head for each."""

    def __init__(self) -> None:
        super().__init__()
        self.person, self.film = nn.Embedding(PEOPLE, 8), nn.Embedding(FILMS, 8)
        self.shared = nn.Sequential(nn.Linear(16, 8), nn.ReLU())
        self.heads = nn.ModuleDict({"open": nn.Linear(8, 2), "stars": nn.Linear(8, 1)})

    def forward(self, visit: Visit) -> dict[str, Tensor]:
        """Outputs by the names of the tasks."""
        both = torch.cat([self.person(visit.person), self.film(visit.film)], 1)
        features = self.shared(both)
        return {name: head(features) for name, head in self.heads.items()}


PROBLEM = lp.Problem(
    name="ratings",
    summary="whether a film's page is opened, and the stars it gets, 2 tasks",
    tasks=[
        lp.Task("open", F.cross_entropy, lp.accuracy),
        lp.Task("stars", F.mse_loss, F.mse_loss, False, 2.0, missing=float("nan")),
    ],
    network=Recommender,
    data=load,
    # What the tasks share is adapted; each head stays one.
    shared=["person", "film", "shared"],
    settings={"epochs": 6, "batch_size": 128, "learning_rate": 1e-2, "rank": 4, "lambda_p": 1.0},
)
