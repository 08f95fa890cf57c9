import pytest

from lorpman import UsageError
from lorpman.lab.problems.registry import PROBLEMS, get_problem


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_name_leads_to_the_problem_of_that_name(name):
    assert get_problem(name).name == name


def test_an_unknown_problem_is_refused_with_the_nearest_name():
    with pytest.raises(UsageError, match="did you mean 'census'"):
        get_problem("sensus")
