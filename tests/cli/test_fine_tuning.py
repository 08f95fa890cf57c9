"""A pretrained encoder with two heads, through every command: trained, resumed, taken away."""

import json
import shutil

import pytest
import torch

from command_line import files, refused, run
from lorpman.training.checkpoint import load_model

pytest.importorskip("transformers")
# Their libraries warn of names that they have deprecated themselves.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

PROBLEM = '''
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import Dataset
from transformers import BertConfig, BertModel

import lorpman as lp

WORDS = 40


class Encoder(nn.Module):
    """What BERT says of a sentence, by its first token."""

    def __init__(self):
        super().__init__()
        config = BertConfig(
            hidden_size=16,
            intermediate_size=24,
            num_hidden_layers=2,
            num_attention_heads=2,
            vocab_size=WORDS,
        )
        self.bert = BertModel(config)

    def forward(self, input_ids, attention_mask):
        return self.bert(input_ids=input_ids, attention_mask=attention_mask).pooler_output


def network():
    return lp.SharedBottom(Encoder(), [nn.Linear(16, 2), nn.Linear(16, 2)])


class Sentences(Dataset):
    """Is the first word even, and is the second?"""

    def __init__(self, seed):
        draw = torch.Generator().manual_seed(seed)
        self.words = torch.randint(1, WORDS, (48, 6), generator=draw)

    def __len__(self):
        return len(self.words)

    def __getitem__(self, index):
        words = self.words[index]
        x = {"input_ids": words, "attention_mask": torch.ones_like(words)}
        return x, (words[0] % 2, words[1] % 2)


PROBLEM = lp.Problem(
    name="sentences",
    tasks=[lp.Task(name, F.cross_entropy, lp.accuracy) for name in ("first", "second")],
    network=network,
    data=lambda: lp.Splits(train=Sentences(0), validation=Sentences(1), test=Sentences(2)),
    settings={"epochs": 3, "batch_size": 16, "window": 2, "learning_rate": 0.01},
)
'''


@pytest.fixture(scope="module")
def mine(tmp_path_factory):
    file = tmp_path_factory.mktemp("mine") / "mine.py"
    file.write_text(PROBLEM)
    return file


@pytest.fixture(scope="module")
def tuned(mine):
    """A run that left the encoder as it came."""
    import lorpman as lp
    from lorpman.lab.problems.own_problem import find_problem

    out = mine.parent / "run"
    lp.train(find_problem(str(mine)), out=out, frozen=True, rank=4, progress=False)
    return out


def _loss(notes):
    return sum(notes["losses"].values())


def test_training_moves_factors_and_heads_alone(capsys, mine, tmp_path):
    out = tmp_path / "run"
    options = ["--set", "frozen=true", "--set", "batched=true", "--set", "rank=4", "--quiet"]
    options += ["--out", out]
    code, _, err = run(capsys, "train", mine, *options)
    assert (code, err) == (0, "")
    assert json.loads((out / "run.json").read_text())["settings"]["frozen"] is True
    notes = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert _loss(notes[-1]) < _loss(notes[0])
    assert {note["frozen"] for note in notes} == {True}
    names = ("checkpoint.previous.safetensors", "checkpoint.safetensors")
    before, after = (load_model(out / name) for name in names)
    moved = {name for name in before if not torch.equal(before[name], after[name])}
    assert {name.partition(".")[0] for name in moved} == {"deltas", "network"}
    assert {name for name in moved if name.startswith("network.")} == {
        f"network.heads.{i}.{part}" for i in (0, 1) for part in ("weight", "bias")
    }


def test_a_resumed_training_ends_in_the_same_bits(capsys, mine, tuned, tmp_path):
    out = tmp_path / "run"
    shutil.copytree(tuned, out)
    # As it stood after the second of three epochs.
    (out / "checkpoint.previous.safetensors").replace(out / "checkpoint.safetensors")
    (out / "front.json").unlink()
    options = ["--set", "frozen=true", "--set", "rank=4", "--quiet", "--out", out, "--resume"]
    code, _, err = run(capsys, "train", mine, *options)
    assert (code, err) == (0, "")
    assert (out / "front.json").read_bytes() == (tuned / "front.json").read_bytes()


def test_the_front_is_scored_and_a_preference_selected(capsys, mine, tuned):
    code, out, _ = run(capsys, "evaluate", tuned, "--problem", mine)
    assert code == 0
    assert "(11 preferences)" in out
    options = ["--at-least", "first=0.1", "--best", "second", "--problem", mine]
    code, out, _ = run(capsys, "select", tuned, *options)
    assert code == 0


def test_adapters_are_what_the_run_learned(capsys, mine, tuned, tmp_path):
    import lorpman as lp
    from lorpman.lab.problems.own_problem import find_problem

    problem = find_problem(str(mine))
    to = tmp_path / "adapters"
    code, out, _ = run(capsys, "export", tuned, "--problem", mine, "--to", f"{to}/")
    assert code == 0
    assert [str(to / name) in out for name in ("first", "second")] == [True, True]
    one = tmp_path / "adapter"
    options = ["--alpha", "0.3,0.7", "--to", f"{one}/"]
    code, _, _ = run(capsys, "export", tuned, "--problem", mine, *options)
    assert code == 0
    peft = pytest.importorskip("peft")
    model = lp.open_run(tuned, problem=problem).model.eval()
    words = torch.randint(1, 40, (4, 6))
    x = {"input_ids": words, "attention_mask": torch.ones_like(words)}
    for folder, alpha in [(to / "first", [1.0, 0.0]), (one, [0.3, 0.7])]:
        # The base as the run had it: that of a person would be the pretrained one.
        base = lp.open_run(tuned, problem=problem).model.network
        adapted = peft.PeftModel.from_pretrained(base, folder).eval()
        expected = model(x, torch.tensor(alpha))
        for mine_, its in zip(adapted.base_model.model(x), expected, strict=True):
            torch.testing.assert_close(mine_, its, atol=1e-5, rtol=1e-5)


def test_a_run_that_trained_its_network_has_no_adapters(capsys, mine, tmp_path):
    out = tmp_path / "run"
    options = ["--quiet", "--epochs", "1", "--set", "watch_samples=0", "--out", out]
    code, _, _ = run(capsys, "train", mine, *options)
    assert code == 0
    before = files(out)
    to = tmp_path / "adapters"
    message = refused(capsys, "export", out, "--problem", mine, "--to", f"{to}/")
    assert "build the manifold with frozen=True" in message
    assert not to.exists()
    assert files(out) == before
