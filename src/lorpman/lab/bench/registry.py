"""All parts of the benchmark: rows, which have a target, and studies, which have none."""

from lorpman.lab.bench import (
    finiteness_row,
    inference_rows,
    memory_row,
    step_rows,
    watching_rows,
    whole_run_row,
)
from lorpman.lab.bench.benchmark_row import BenchmarkRow
from lorpman.lab.bench.compile_and_bf16_study import compile_and_bf16
from lorpman.lab.bench.growth_study import growth
from lorpman.lab.bench.rivals_study import rivals
from lorpman.lab.bench.study import Study

ROWS = (
    BenchmarkRow(
        "lenet-step",
        "LORPMAN step, MultiMNIST LeNet, batch 256, b=4, r=8, orthogonality on, against plain",
        0.90,
        step_rows.lenet_step,
    ),
    BenchmarkRow(
        "census-step",
        "LORPMAN step, Census MLP, batch 256, b=2, both regularisers, against plain",
        1.10,
        step_rows.census_step,
    ),
    BenchmarkRow(
        "vgg-step",
        "LORPMAN step, VGG-16, m=20, batch 64, b=2, r=8, against plain",
        1.20,
        step_rows.vgg_step,
    ),
    BenchmarkRow(
        "resnet-step",
        "LORPMAN step, ResNet-18, m=40, r=32, batch 32 at 64x64, b=3, against plain",
        1.40,
        step_rows.resnet_step,
    ),
    BenchmarkRow(
        "vgg-memory",
        "peak memory of the VGG-16 step against b plain forwards back-propagated together",
        1.20,
        memory_row.vgg_memory,
    ),
    BenchmarkRow(
        "orthogonality",
        "orthogonality term, m=40, against building every B A",
        0.10,
        inference_rows.orthogonality_term,
    ),
    BenchmarkRow(
        "evaluation",
        "evaluating an 11-point front against 11 plain passes over the same data",
        1.10,
        inference_rows.front_evaluation,
    ),
    BenchmarkRow(
        "switching",
        "switching preference at inference (merge and load) against a forward pass at batch 256",
        0.50,
        inference_rows.switching,
    ),
    BenchmarkRow(
        "import", "import lorpman beyond import torch", 0.5, inference_rows.import_time, "s"
    ),
    BenchmarkRow(
        "whole-run",
        "whole lorpman train multimnist against the sum of its training steps",
        1.15,
        whole_run_row.whole_run,
    ),
    BenchmarkRow(
        "watch-2",
        "hypervolume after an epoch against the epoch, MultiMNIST, m=2",
        0.02,
        watching_rows.two_tasks,
        "%",
    ),
    BenchmarkRow(
        "watch-20",
        "hypervolume after an epoch against the epoch, CIFAR-100, m=20",
        0.02,
        watching_rows.twenty_tasks,
        "%",
    ),
    BenchmarkRow(
        "finiteness",
        "looking for NaN and infinity after an epoch against the epoch, MultiMNIST",
        0.01,
        finiteness_row.finiteness,
        "%",
    ),
)

STUDIES = (
    Study("rivals", "a step and an epoch of every continuous method against plain", rivals),
    Study("growth", "time and memory of a step against m, r and b", growth),
    Study(
        "switches",
        "a step with torch.compile and with bfloat16 against one without",
        compile_and_bf16,
    ),
)
