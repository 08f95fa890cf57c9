"""Taking a network away."""

from dataclasses import replace

from lorpman.explorer.cards.export_card import export_card, export_command
from lorpman.explorer.queries import FORMATS
from lorpman.lab.problems.own_problem import find_problem
from small_problem import SOURCE


def test_the_command_can_be_copied(window, served, digits):
    view = window(served.url + "?alpha=0.3,0.7")
    view.settled()
    command = view.page.text_content("#command")
    assert command == f"lorpman export {digits} --alpha 0.3,0.7 --to model.onnx"
    view.page.locator("[data-copy=command]").click()
    view.page.wait_for_function(
        "document.querySelector('[data-copy=command]').textContent == 'copied'"
    )
    assert view.page.evaluate("navigator.clipboard.readText()") == command


def test_every_format_has_a_button():
    buttons = [part for part in export_card()._traverse() if hasattr(part, "data-format")]
    assert [getattr(button, "data-format") for button in buttons] == list(FORMATS)


def test_the_command_names_a_problem_of_ones_own(opened, tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    problem = find_problem("mine.py")
    mine = replace(opened, spec=replace(opened.spec, problem=problem))
    assert " --problem mine.py --to model.onnx" in export_command(mine, (0.25, 0.75))
    nameless = replace(opened.spec, problem=replace(problem, reference=""))
    assert export_command(replace(opened, spec=nameless), (0.25, 0.75)).startswith("lp.export(")


def test_a_path_with_spaces_is_quoted(opened):
    strange = replace(opened, path=opened.path / "a b")
    assert f"'{opened.path}/a b' --alpha 0.25,0.75" in export_command(strange, (0.25, 0.75))
