import pytest

from lorpman import Convex, Cosmos, Film, Hyper
from lorpman.lab.methods.registry import METHODS, get_method
from lorpman.lab.networks.lenet import lenet
from lorpman.lab.networks.vgg import vgg16
from lorpman.lab.problems.problem import Layer
from lorpman.lab.runs.spec import Spec
from lorpman.lab.runs.train import train
from lorpman.preference import Angles

CONTINUOUS = [name for name, method in METHODS.items() if method.kind == "continuous"]


@pytest.mark.parametrize("name", CONTINUOUS)
def test_every_continuous_method_trains_through_the_same_loop(name, tmp_path):
    settings = {"epochs": 1, "batch_size": 1000, "watch_samples": 0}
    if name == "phn-hvi":
        settings["warmup_epochs"] = 0
    spec = Spec.make("multidigits", name, 0, settings)
    result = train(spec, tmp_path / "run", tmp_path, progress=False)
    assert len(result.front) == 11
    assert result.front.hypervolume() > 0


@pytest.mark.parametrize(
    ("name", "kind", "parameters"),
    [
        ("pamal", Convex, 54_900),
        ("cosmos", Cosmos, 28_158),
        ("film", Film, 27_930),
        ("phn", Hyper, 2_792_950),
        ("phn-epo", Hyper, 2_792_950),
        ("phn-hvi", Hyper, 2_792_950),
    ],
)
def test_rows_build_what_the_paper_counts(name, kind, parameters):
    model = Spec.make("multimnist", name, 0, {}).build()
    assert type(model) is kind
    assert model.num_parameters() == parameters


def test_pamal_leaves_the_norms_of_cifar_alone():
    row = get_method("pamal")
    model = row.manifold(vgg16(2, 5, 4), 2, ("bottom.convs",), row.settings())
    assert {name.split(".")[1] for name in model.members() if "bottom" in name} == {"convs"}


def test_a_methods_own_defaults_stand_above_the_problems_and_below_its_own_row():
    assert Spec.make("multimnist", "lorpman", 0, {}).training.window == 4
    assert Spec.make("multimnist", "cosmos", 0, {}).training.window == 1
    assert Spec.make("multidigits", "phn-hvi", 0, {}).training.window == 8
    assert Spec.make("multimnist", "cosmos", 0, {"window": 3}).training.window == 3
    layer = Layer(settings={"window": 4, "epochs": 9}, methods={"a": {"epochs": 2}})
    assert layer.of("a", {"window"}) == {"epochs": 2}
    assert layer.of("b") == {"window": 4, "epochs": 9}


def test_laptop_scale_comes_on_top_but_leaves_what_belongs_to_the_method():
    paper, laptop = (Spec.make("utkface", "cosmos", 0, {}, scale) for scale in ("paper", "laptop"))
    assert (paper.training.epochs, laptop.training.epochs) == (100, 10)
    assert (paper.training.window, laptop.training.window) == (1, 1)


def test_the_row_supplies_the_sampler():
    assert Spec.make("multimnist", "phn", 0, {}).sampler() is None
    sampler = Spec.make("multimnist", "phn-hvi", 0, {}).sampler()
    assert isinstance(sampler, Angles)
    assert sampler(2, 16, None).min() > 0.09


def test_dropped_weights_of_phn_hvi():
    row = get_method("phn-hvi")
    assert row.manifold(lenet(), 2, None, row.settings(hidden=2)).dropout == 0.05
