"""Networks of transformers: run, trained by fit and by their own Trainer, and taken away."""

import copy
import subprocess
import sys

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import lorpman as lp
from hugging_face import language_front, language_model, tokens
from lorpman.manifold.stacked_outputs import select_output
from properties import assert_batch_is_loop

pytest.importorskip("transformers")
# Their libraries warn of names that they have deprecated themselves.
pytestmark = pytest.mark.filterwarnings("ignore")

ALPHAS = torch.tensor([[0.2, 0.8], [0.7, 0.3]])


def _likes(token):
    """The loss of a task that would like to read one token everywhere."""

    def loss(output, target):
        return F.cross_entropy(output.logits.flatten(0, 1), torch.full((target.numel(),), token))

    return loss


TASKS = [
    lp.Task(f"likes{token}", _likes(token), _likes(token), maximise=False, reference=9.0)
    for token in (3, 5)
]


def _loader(batches=6):
    torch.manual_seed(0)
    rows = [tokens() for _ in range(batches)]
    return [(x, [x["input_ids"]] * 2) for x in rows]


def test_importing_lorpman_does_not_import_transformers():
    code = "import sys, lorpman; sys.exit('transformers' in sys.modules or 'peft' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("frozen", [False, True])
def test_keywords_model_outputs_and_caches_pass_through(frozen):
    network, x = language_model(), tokens()
    x["labels"] = x["input_ids"]
    model = lp.LowRank(network, 2, rank=2, frozen=frozen).eval()
    for delta in model.low_rank_deltas().values():
        nn.init.normal_(delta.B, std=0.2)
    outputs = model(x, ALPHAS)
    assert type(outputs) is type(network(**x))
    assert outputs.loss.shape == (2,)
    assert isinstance(outputs.past_key_values, list)
    assert_batch_is_loop(model, x)
    for j, alpha in enumerate(ALPHAS):
        expected = model.solution(alpha)(**x)
        chosen = select_output(outputs, j)
        torch.testing.assert_close(chosen.logits, expected.logits, atol=1e-5, rtol=1e-5)
        assert type(chosen.past_key_values) is type(expected.past_key_values)


@pytest.mark.parametrize("shared", ["model.layers", None], ids=["layers", "all"])
def test_generation_needs_no_copy_of_the_base(shared):
    model, x = language_front(shared, tied=True), tokens()
    for alpha in ALPHAS:
        expected = model.solution(alpha).generate(**x, max_new_tokens=6, do_sample=False)
        with model.at(alpha) as network:
            found = network.generate(**x, max_new_tokens=6, do_sample=False)
        assert torch.equal(found, expected)


def test_one_batch_answers_requests_with_different_preferences():
    model, x = language_front(), tokens(2)
    with model.at(ALPHAS) as network:
        logits = network(**x).logits
        generated = network.generate(**x, max_new_tokens=4, do_sample=False)
    for i, alpha in enumerate(ALPHAS):
        torch.testing.assert_close(logits[i], model(x, alpha).logits[i], atol=1e-5, rtol=1e-5)
        alone = {"input_ids": x["input_ids"][i : i + 1]}
        with model.at(alpha) as network:
            expected = network.generate(**alone, max_new_tokens=4, do_sample=False)
        assert torch.equal(generated[i], expected[0])


@pytest.mark.parametrize("reentrant", [None, False, True])
def test_gradient_checkpointing_as_transformers_switches_it_on(reentrant):
    plain, x = language_front().train(), tokens()
    checkpointed = copy.deepcopy(plain)
    kwargs = None if reentrant is None else {"use_reentrant": reentrant}
    checkpointed.network.gradient_checkpointing_enable(kwargs)
    checkpointed.network.enable_input_require_grads()
    gradients = []
    for model in (plain, checkpointed):
        x["use_cache"] = False
        model(x, ALPHAS).logits.square().sum().backward()
        gradients.append([p.grad for p in model.deltas.parameters()])
    for mine, its in zip(*gradients, strict=True):
        torch.testing.assert_close(mine, its)
        assert its.abs().sum() > 0


def test_fit_and_evaluate_train_a_front_of_language_models():
    model, loader = lp.LowRank(language_model(), 2, rank=4, frozen=True), _loader()
    before = lp.evaluate(model, TASKS, loader)
    lp.fit(model, TASKS, loader, epochs=3, window=2, progress=False)
    after = lp.evaluate(model, TASKS, loader)
    assert after.hypervolume() > before.hypervolume()
    assert after.scores[0, 1] < after.scores[-1, 1]
    assert after.scores[-1, 0] < after.scores[0, 0]


def _steps(model, x, precision=None, steps=4):
    """The losses of a few steps, with autocast where a precision is named."""
    optimizer = torch.optim.AdamW(model.deltas.parameters(), lr=1e-2)
    losses = []
    for _ in range(steps):
        with torch.autocast("cpu", precision, enabled=precision is not None):
            logits = model(x, ALPHAS).logits
        wanted = torch.full((logits[0, ..., 0].numel(),), 3)
        loss = sum(F.cross_entropy(row.flatten(0, 1).float(), wanted) for row in logits)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses, logits.dtype


@pytest.mark.parametrize("way", ["base", "autocast"])
def test_bfloat16_trains_factors_of_single_precision(way):
    x = tokens() | {"use_cache": False}
    expected, _ = _steps(language_front().train(), x)
    network = language_model()
    if way == "base":
        network = network.bfloat16()
    model = lp.LowRank(network, 2, rank=4, scale=1.5, frozen=True, shared="model.layers")
    # Apart from rounding, the same front.
    model.deltas.load_state_dict(language_front().deltas.state_dict())
    losses, dtype = _steps(model.train(), x, torch.bfloat16 if way == "autocast" else None)
    assert dtype == torch.bfloat16
    assert {p.dtype for p in model.deltas.parameters()} == {torch.float32}
    kept = torch.bfloat16 if way == "base" else torch.float32
    assert {p.dtype for p in model.network.parameters()} == {kept}
    torch.testing.assert_close(losses, expected, rtol=0.02, atol=0.02)
    assert losses[-1] < losses[0]


class Rows(torch.utils.data.Dataset):
    def __init__(self, n=16):
        self.tokens = tokens(n)["input_ids"]

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, index):
        return self.tokens[index]


def _collate(rows):
    batch = torch.stack(rows)
    return {"input_ids": batch, "labels": [batch, batch]}


def _trainer(folder, **settings):
    from transformers import TrainingArguments

    from lorpman.integrations.transformers import ParetoTrainer

    torch.manual_seed(0)
    args = TrainingArguments(
        output_dir=str(folder),
        per_device_train_batch_size=4,
        learning_rate=1e-2,
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        save_strategy="epoch",
        logging_strategy="no",
        **settings,
    )
    model = lp.LowRank(language_model(), 2, rank=2, frozen=True, shared="model.layers")
    data = Rows()
    return ParetoTrainer(
        model,
        args,
        TASKS,
        window=2,
        train_dataset=data,
        eval_dataset=data,
        data_collator=_collate,
    )


def test_the_trainer_trains_a_front_and_resumes_in_the_same_bits(tmp_path):
    whole = _trainer(tmp_path / "whole", num_train_epochs=2)
    before = whole.evaluate()
    whole.train()
    after = whole.evaluate()
    assert after["eval_hypervolume"] > before["eval_hypervolume"]
    assert after["eval_best_likes3"] < before["eval_best_likes3"]
    assert len(whole.front.alphas) == 11
    (first, _) = sorted((tmp_path / "whole").glob("checkpoint-*"))
    assert (first / "front.safetensors").stat().st_size < 60_000
    resumed = _trainer(tmp_path / "resumed", num_train_epochs=2)
    resumed.train(resume_from_checkpoint=str(first))
    for mine, its in zip(resumed.model.parameters(), whole.model.parameters(), strict=True):
        assert torch.equal(mine, its)


def test_the_trainer_switches_checkpointing_on_in_the_network(tmp_path):
    trainer = _trainer(tmp_path, max_steps=1, activation_checkpointing=True)
    assert trainer.model.network.is_activation_checkpointing
    before = {n: v.clone() for n, v in trainer.model.deltas.state_dict().items()}
    trainer.train()
    moved = [n for n, v in trainer.model.deltas.state_dict().items() if not v.equal(before[n])]
    assert len(moved) == len(before) / 2  # B leaves zero in the first step, A follows


def test_what_the_trainer_cannot_use_is_refused(tmp_path):
    from lorpman.integrations.transformers import ParetoTrainer

    trainer = _trainer(tmp_path, max_steps=1)
    with pytest.raises(lp.UsageError, match="needs targets under 'labels', found input_ids"):
        trainer.compute_loss(trainer.model, tokens())
    with pytest.raises(lp.UsageError, match="num_tasks=2, but 1 tasks"):
        ParetoTrainer(trainer.model, trainer.args, TASKS[:1])
    with pytest.raises(lp.UsageError, match="window must be at least 1, got 0"):
        ParetoTrainer(trainer.model, trainer.args, TASKS, window=0)
    (tmp_path / "front.safetensors").write_bytes(b"")
    from safetensors.torch import save_file

    save_file({"other": torch.zeros(1)}, tmp_path / "front.safetensors")
    with pytest.raises(lp.UsageError, match="holds 1 trained parameters, expected the 28"):
        trainer._load_from_checkpoint(str(tmp_path))
