"""Settings for the whole suite: one thread, fixed seeds, quick hypothesis."""

import pytest
import torch
from hypothesis import settings

torch.set_num_threads(1)
settings.register_profile("lorpman", deadline=None, max_examples=25, derandomize=True)
settings.load_profile("lorpman")


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)
