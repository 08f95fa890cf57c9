"""What is trained in the rows about steps."""

import torch

from lorpman.lab.bench.workload import OneNormVGG16, from_preset, lenet


def test_the_vgg_of_one_norm_set_has_thirteen_layers():
    bottom = OneNormVGG16(width=2)
    assert len(bottom.convs) == len(bottom.norms) == 13
    assert bottom(torch.rand(2, 3, 32, 32)).shape == (2, 16)


def test_a_workload_has_the_presets_settings_and_batch():
    workload = lenet()
    training = workload.spec.training
    assert (len(workload.x), training.window, len(workload.tasks)) == (256, 4, 2)
    assert workload.spec_of("pamal").method.name == "pamal"


def test_fit_gets_images_as_a_loader_lays_them_out():
    workload = from_preset("cifar100", (3, 32, 32), 5, {"width": 4}, batch=2)
    assert workload.fit_batch()[0].is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(workload.fit_batch()[0], workload.plain_batch()[0])
