"""Real texts: from which page of Python's manual is a passage, and from where on that page?

Inputs are texts as they are, which the network itself turns into numbers. They come with every
Python (what ``help("class")`` shows), so nothing is downloaded. The page asks for words that are
peculiar to it, the place for those that begin or end an explanation.

    lorpman compare examples/texts.py --methods lorpman,retrain --seeds 0
    lorpman explore runs/compare/texts/lorpman-0 --problem examples/texts.py
"""

import zlib
from pydoc_data.topics import topics

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import lorpman as lp

PAGES, WORDS, PASSAGE = 8, 4096, 24
NAMES = sorted(sorted(topics, key=lambda name: -len(topics[name]))[:PAGES])


def load() -> lp.Splits:
    """Passages of 24 words; every tenth one is for validation, and the one after it for the test.

    Passages do not overlap, so no word of a test passage was seen at its place.
    """
    samples: list[list[tuple[str, list[Tensor]]]] = [[], [], []]
    for page, name in enumerate(NAMES):
        words = topics[name].split()
        starts = range(0, len(words) - PASSAGE, PASSAGE)
        for number, start in enumerate(starts):
            place = torch.tensor([start / len(words)])
            split = {8: 1, 9: 2}.get(number % 10, 0)
            text = " ".join(words[start : start + PASSAGE])
            samples[split].append((text, [torch.tensor(page), place]))
    return lp.Splits(*samples)


class BagOfWords(nn.Module):
    """The mean of the vectors of a text's words, by hash; then a layer that both tasks share."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.EmbeddingBag(WORDS, 32)
        self.hidden = nn.Linear(32, 32)
        self.page, self.place = nn.Linear(32, PAGES), nn.Linear(32, 1)

    def forward(self, texts: list[str]) -> dict[str, Tensor]:
        """One output per task, for texts ``[n]``."""
        hashed = [[zlib.crc32(w.lower().encode()) % WORDS for w in text.split()] for text in texts]
        ends = torch.tensor([0, *(len(words) for words in hashed[:-1])]).cumsum(0)
        flat = torch.tensor([word for words in hashed for word in words])
        shared = torch.relu(self.hidden(self.words(flat, ends)))
        return {"page": self.page(shared), "place": torch.sigmoid(self.place(shared))}


PROBLEM = lp.Problem(
    name="texts",
    summary="page and place of a passage of Python's manual, 2 tasks",
    tasks=[
        lp.Task("page", F.cross_entropy, lp.accuracy, classes=NAMES),
        lp.Task("place", F.mse_loss, F.mse_loss, maximise=False, reference=0.1),
    ],
    network=BagOfWords,
    data=load,
    # What follows the shared layer belongs to one task, and is not adapted.
    shared=["words", "hidden"],
    settings={"epochs": 20, "batch_size": 64, "learning_rate": 0.01, "rank": 4},
)
