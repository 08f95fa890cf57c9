"""The front after an epoch is watched at the preferences of the preset."""

import torch

from lorpman.lab.bench.watching_rows import _volume_of, _watched_preferences
from lorpman.lab.bench.workload import from_preset


def test_fewer_preferences_are_watched_where_the_preset_says_so():
    workload = from_preset("multidigits", (1, 12, 12), 10, batch=8)
    model = workload.manifold()
    assert torch.equal(_watched_preferences(model, None), model.preferences())
    assert torch.equal(_watched_preferences(model, 99), model.preferences())
    assert len(_watched_preferences(model, 5)) == 5


def test_the_volume_is_that_of_a_front_of_full_size():
    workload = from_preset("multidigits", (1, 12, 12), 10, batch=8)
    volume = _volume_of(workload.tasks, 11)
    assert 0.4**2 < float(volume) < 0.7**2
