"""Tiny random networks of transformers, which need no download."""

import torch
from torch import nn

import lorpman as lp

TOKENS = 50


def language_model(tied=False):
    """A causal language model of two layers, in evaluation mode."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        vocab_size=TOKENS,
        tie_word_embeddings=tied,
        pad_token_id=0,
        eos_token_id=None,
        bos_token_id=None,
    )
    return LlamaForCausalLM(config).eval()


def gpt2():
    """A causal language model of one layer, whose linear layers have inputs as rows."""
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    config = GPT2Config(n_embd=16, n_layer=1, n_head=2, vocab_size=TOKENS, n_positions=12)
    return GPT2LMHeadModel(config).eval()


def moved(model, size=0.2):
    """The manifold with deltas other than zero."""
    for delta in model.low_rank_deltas().values():
        nn.init.normal_(delta.B, std=size)
    return model


def language_front(shared="model.layers", tied=False, **options):
    """A front over such a network, with deltas other than zero."""
    model = lp.LowRank(
        language_model(tied), 2, rank=4, scale=1.5, frozen=True, shared=shared, **options
    )
    return moved(model).eval()


def tokens(n=2, length=7):
    """A batch by keywords."""
    return {"input_ids": torch.randint(1, TOKENS, (n, length))}
