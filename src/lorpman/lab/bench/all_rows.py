"""The table: every row's name, target and way of measuring, in one place."""

from lorpman.lab.bench import inference_rows, memory, step_rows, watching_cost, whole_run
from lorpman.lab.bench.row import Row

ROWS = (
    Row(
        "lenet-step",
        "LORPMAN step, MultiMNIST LeNet, batch 256, b=4, r=8, orthogonality on, against plain",
        0.90,
        step_rows.lenet_step,
    ),
    Row(
        "census-step",
        "LORPMAN step, Census MLP, batch 256, b=2, both regularisers, against plain",
        1.10,
        step_rows.census_step,
    ),
    Row(
        "vgg-step",
        "LORPMAN step, VGG-16, m=20, batch 64, b=2, r=8, against plain",
        1.20,
        step_rows.vgg_step,
    ),
    Row(
        "resnet-step",
        "LORPMAN step, ResNet-18, m=40, r=32, batch 32 at 64x64, b=3, against plain",
        1.40,
        step_rows.resnet_step,
    ),
    Row(
        "vgg-memory",
        "peak memory of the VGG-16 step against b plain forwards back-propagated together",
        1.20,
        memory.vgg_memory,
    ),
    Row(
        "orthogonality",
        "orthogonality term, m=40, against building every B A",
        0.10,
        inference_rows.orthogonality_term,
    ),
    Row(
        "evaluation",
        "evaluating an 11-point front against 11 plain passes over the same data",
        1.10,
        inference_rows.front_evaluation,
    ),
    Row(
        "switching",
        "switching preference at inference (merge and load) against a forward pass at batch 256",
        0.50,
        inference_rows.switching,
    ),
    Row("import", "import lorpman beyond import torch", 0.5, inference_rows.import_time, "s"),
    Row(
        "whole-run",
        "whole lorpman train multimnist against the sum of its training steps",
        1.15,
        whole_run.whole_run,
    ),
    Row(
        "watch-2",
        "hypervolume after an epoch against the epoch, MultiMNIST, m=2",
        0.02,
        watching_cost.two_tasks,
        "%",
    ),
    Row(
        "watch-20",
        "hypervolume after an epoch against the epoch, CIFAR-100, m=20",
        0.02,
        watching_cost.twenty_tasks,
        "%",
    ),
)
