import pytest

from lorpman import Convex, Cosmos, Film, Hyper
from lorpman.lab.methods.continuous import CONTINUOUS
from lorpman.lab.methods.registry import get_method
from lorpman.lab.networks.lenet import lenet
from lorpman.lab.networks.vgg import vgg16
from lorpman.lab.runs.spec import Spec
from lorpman.lab.runs.train import train
from lorpman.preference import Angles, Dirichlet
from lorpman.rules.chebyshev import Chebyshev, SmoothChebyshev
from lorpman.rules.objective import Linear

NAMES = [method.name for method in CONTINUOUS]


@pytest.mark.parametrize("name", NAMES)
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


def test_the_row_supplies_the_sampler():
    assert isinstance(Spec.make("multimnist", "phn", 0, {}).sampler(), Dirichlet)
    sampler = Spec.make("multimnist", "phn-hvi", 0, {}).sampler()
    assert isinstance(sampler, Angles)
    assert sampler(2, 16, None).min() > 0.09


def test_dropped_weights_of_phn_hvi():
    row = get_method("phn-hvi")
    assert row.manifold(lenet(), 2, None, row.settings(hidden=2)).dropout == 0.05


@pytest.mark.parametrize(
    ("scalarisation", "kind"),
    [("linear", Linear), ("chebyshev", Chebyshev), ("smooth-chebyshev", SmoothChebyshev)],
)
def test_the_setting_chooses_the_scalarisation(scalarisation, kind):
    row = get_method("phn")
    assert type(row.rule(row.settings(scalarisation=scalarisation))) is kind


def test_pamal_without_weight_on_it_has_no_regulariser():
    row = get_method("pamal")
    assert row.rule(row.settings()).regulariser is None
    assert row.rule(row.settings(lambda_p=1.0)).regulariser is not None
