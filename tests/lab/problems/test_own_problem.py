import pytest

from lorpman import UsageError
from lorpman.lab.problems.own_problem import find_problem
from small_problem import SOURCE, small_problem


@pytest.fixture
def file(tmp_path):
    path = tmp_path / f"mine_{tmp_path.name}.py"
    path.write_text(SOURCE)
    return path


def test_a_file_a_variable_and_a_module_lead_to_the_same(file, monkeypatch):
    monkeypatch.chdir(file.parent)
    problem = find_problem(file.name)
    assert problem.name == "small"
    assert problem.reference == f"{file}:PROBLEM"
    assert find_problem(f"{file}:PROBLEM").network is problem.network
    assert find_problem(f"{file.stem}:PROBLEM").name == "small"


def test_the_reference_leads_to_it_again(file):
    assert find_problem(find_problem(str(file)).reference).name == "small"


def test_a_file_may_import_what_stands_beside_it(file):
    (file.parent / f"{file.stem}_beside.py").write_text("NAME = 'beside'")
    file.write_text(SOURCE.replace('"small"', "NAME") + "")
    file.write_text(f"from {file.stem}_beside import NAME\n" + file.read_text())
    assert find_problem(str(file)).name == "beside"


def test_a_changed_file_is_read_again(file):
    first = find_problem(str(file))
    file.write_text(SOURCE.replace('"small"', '"other"'))
    again = find_problem(str(file))
    assert (first.name, again.name) == ("small", "other")
    assert first.source != again.source


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 3", "has no PROBLEM; define one: PROBLEM = lp.Problem"),
        ("PROBLEM = 3", "must be an lp.Problem, found int"),
        (SOURCE.replace("PROBLEM =", "OTHER ="), "has no PROBLEM; it has OTHER"),
        ("a = 1\nb = c", "cannot be imported, line 2: NameError: name 'c'"),
        ("def (", "cannot be imported, line 1: SyntaxError"),
        ("raise SystemExit(3)", "cannot be imported, line 1: SystemExit"),
        (SOURCE.replace('"sign"', '"number"'), "task names must differ"),
        (SOURCE.replace('"small"', '"census"'), "there is a problem 'census' already"),
    ],
)
def test_a_file_without_a_problem_is_refused(file, text, message):
    file.write_text(text)
    with pytest.raises(UsageError, match=message):
        find_problem(str(file))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere.py", "cannot read the problem file nowhere.py.*lorpman new nowhere.py"),
        ("sensus", "did you mean 'census'"),
        ("no_such_module:PROBLEM", "cannot be imported: ModuleNotFoundError"),
    ],
)
def test_what_is_not_there_is_refused(name, message):
    with pytest.raises(UsageError, match=message):
        find_problem(name)


def test_a_problem_is_taken_as_it_is_unless_its_name_is_taken():
    problem = small_problem()
    assert find_problem(problem) is problem
    with pytest.raises(UsageError, match="give yours another name"):
        find_problem(small_problem(name="toy"))
