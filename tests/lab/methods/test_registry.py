import pytest

from lorpman import UsageError
from lorpman.lab.methods.continuous import CONTINUOUS
from lorpman.lab.methods.discrete import DISCRETE
from lorpman.lab.methods.registry import METHODS, get_method
from lorpman.lab.methods.single import SINGLE


def test_no_two_methods_share_a_name():
    assert len(METHODS) == len(CONTINUOUS) + len(DISCRETE) + len(SINGLE)


@pytest.mark.parametrize(
    ("rows", "kind"), [(CONTINUOUS, "continuous"), (DISCRETE, "discrete"), (SINGLE, "single")]
)
def test_every_row_is_in_the_file_of_its_kind(rows, kind):
    assert {row.kind for row in rows} == {kind}


def test_an_unknown_method_is_refused_with_the_nearest_name():
    with pytest.raises(UsageError, match="did you mean 'pamal'"):
        get_method("pamall")
