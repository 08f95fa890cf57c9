from dataclasses import replace

import pytest

from lorpman.lab.methods.registry import get_method
from lorpman.preference import Angles


@pytest.mark.parametrize(
    ("name", "takes"), [("lorpman", True), ("phn-hvi", False), ("pmtl", False), ("mgda", False)]
)
def test_sampling_is_for_continuous_methods_that_have_no_sampler_of_their_own(name, takes):
    assert get_method(name).takes_sampling is takes


def test_a_sampler_of_its_own_takes_the_place_of_the_setting():
    method = replace(get_method("lorpman"), sampler=lambda settings: Angles())
    assert not method.takes_sampling
