import pytest

from lorpman import Film, LowRank
from lorpman.lab.methods.discrete import DISCRETE
from lorpman.lab.methods.registry import get_method
from lorpman.lab.networks.lenet import lenet


@pytest.mark.parametrize("method", DISCRETE, ids=lambda method: method.name)
def test_there_are_as_many_members_as_the_setting_says(method):
    model = method.manifold(lenet(), 2, None, method.settings(members=3))
    assert len(model.preferences()) == 3


@pytest.mark.parametrize(("conditioning", "kind"), [("film", Film), ("low-rank", LowRank)])
def test_gmooar_is_conditioned_as_the_setting_says(conditioning, kind):
    method = get_method("gmooar-u")
    settings = method.settings(conditioning=conditioning, rank=3, members=2)
    inner = method.manifold(lenet(), 2, None, settings).inner
    assert type(inner) is kind
    if conditioning == "low-rank":
        sizes = {delta.A.shape[-2] for delta in inner.low_rank_deltas().values()}
        assert 3 in sizes


def test_both_forms_of_gmooar_have_a_quality_of_their_own():
    uniform, volume = (get_method(f"gmooar-{name}") for name in ("u", "hv"))
    assert uniform.rule(uniform.settings()).quality == "uniform"
    assert volume.rule(volume.settings()).quality == "hypervolume"


def test_settings_reach_the_rules():
    pmtl, png = get_method("pmtl"), get_method("png")
    assert pmtl.rule(pmtl.settings(cone_epochs=7)).cone_epochs == 7
    assert png.rule(png.settings(tolerance=0.4)).tolerance == 0.4
