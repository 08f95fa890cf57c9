"""Private names of torch and Fabric: they work as they should, and stand in one file."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import lorpman
from lorpman import _torch

_PACKAGE = Path(lorpman.__file__).parent
# What a private name may belong to. Enough of them to know the private names that torch has.
_FOREIGN = (nn.Linear(1, 1), torch.zeros(1), torch.optim.LBFGS([torch.zeros(1)]))


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def _torch_has(name: str) -> bool:
    return any(hasattr(thing, name) for thing in _FOREIGN)


def _defined(tree: ast.Module) -> Iterator[str]:
    """Names that the package itself gives to something."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self":
            yield from [node.attr] if isinstance(node.ctx, ast.Store) else []


def _private_uses(tree: ast.Module, own: frozenset[str]) -> Iterator[str]:
    """Private names that are used, but not the package's own, nor of the standard library."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and _is_private(node.attr):
            foreign = node.attr not in own
            # A name of ours that torch has too is ours only on an object of ours.
            on_ours = ast.unparse(node.value) in ("self", "cls", "super()")
            if foreign or (_torch_has(node.attr) and not on_ours):
                yield ast.unparse(node)
        elif isinstance(node, ast.keyword) and node.arg is not None and _is_private(node.arg):
            yield f"{node.arg}="
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            parts = [*node.module.split("."), *(alias.name for alias in node.names)]
            if parts[0] != "lorpman" and any(_is_private(part) for part in parts):
                yield ast.unparse(node)
        elif isinstance(node, ast.FunctionDef) and _is_private(node.name):
            is_method = [argument.arg for argument in node.args.args[:1]] == ["self"]
            yield from [f"def {node.name}"] if is_method and _torch_has(node.name) else []
        elif isinstance(node, ast.Constant) and _is_private(str(node.value)):
            yield from [repr(node.value)] if _torch_has(str(node.value)) else []


# Of Python and of dash: no concern of this test.
_ALLOWED = {"os._exit", "app._setup_server"}


def test_private_names_of_torch_and_fabric_stand_in_one_file():
    trees = {path: ast.parse(path.read_text()) for path in _PACKAGE.rglob("*.py")}
    own = frozenset(name for tree in trees.values() for name in _defined(tree))
    used = {
        f"{path.relative_to(_PACKAGE)}: {use}"
        for path, tree in trees.items()
        if path.name != "_torch.py"
        for use in _private_uses(tree, own)
        if use not in _ALLOWED
    }
    assert used == set()


@pytest.mark.parametrize(
    "line",
    [
        "torch._foreach_lerp_(a, b, 0.5)",
        "from torch.utils import _pytree",
        "from torch.utils._pytree import tree_map",
        "module._parameters['weight']",
        "self.optimizer._numel_cache = None",
        "fabric.setup(module, _reapply_compile=False)",
        "module.__dict__['_parameters']",
        "class Layer:\n    def _load_from_state_dict(self): ...",
    ],
)
def test_the_search_finds_private_uses(line):
    assert list(_private_uses(ast.parse(line), frozenset({"_parameters"})))


def test_a_tied_parameter_has_all_its_places_and_gets_its_value_in_each():
    network = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2, bias=False))
    network[1].weight = network[0].weight
    places = _torch.parameter_places(network)
    assert places["0.weight"] == [(network[0], "weight"), (network[1], "weight")]
    before = network[0].weight
    with _torch.parameters_replaced(places, {"0.weight": 2 * torch.eye(2)}):
        assert torch.equal(network[1].weight, 2 * torch.eye(2))
        assert network[0].weight is network[1].weight
    assert network[0].weight is before
    assert network[1].weight is before


def test_parameters_come_back_after_an_error():
    network = nn.Linear(2, 2)
    before = network.weight
    places = _torch.parameter_places(network)
    with pytest.raises(KeyError), _torch.parameters_replaced(places, {"weight": torch.eye(2)}):
        raise KeyError
    assert network.weight is before


@pytest.mark.parametrize(
    "layer", [nn.Linear(3, 3), nn.MultiheadAttention(4, 2)], ids=["linear", "attention"]
)
def test_layers_start_afresh_with_whatever_method_they_have(layer):
    before = next(layer.parameters()).clone()
    assert _torch.reset_parameters(layer)
    assert not torch.equal(before, next(layer.parameters()))
    assert not _torch.reset_parameters(nn.ReLU())


def test_hooks_of_checkpointing_are_seen_while_they_are_set():
    seen = []

    def note(x):
        seen.append(_torch.saved_tensor_hooks())
        return x * x

    assert _torch.saved_tensor_hooks() is None
    x = torch.ones(1, requires_grad=True)
    checkpoint(note, x, use_reentrant=False)
    checkpoint(note, x, use_reentrant=False)
    assert None not in seen
    assert seen[0] != seen[1]


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")
def test_transforms_are_seen_while_they_are_at_work():
    seen = []

    def note(x):
        seen.append(_torch.is_transformed())
        return x

    note(torch.ones(2))
    torch.func.vmap(note)(torch.ones(2))
    torch.func.jvp(note, (torch.ones(2),), (torch.ones(2),))
    with torch.autograd.forward_ad.dual_level():
        note(torch.ones(2))
    assert seen == [False, True, True, True]


def test_views_share_a_storage_also_without_data():
    whole, other = torch.zeros(4), torch.zeros(4)
    assert _torch.storage_id(whole[1:]) == _torch.storage_id(whole)
    assert _torch.storage_id(other) != _torch.storage_id(whole)
    first, second = torch.zeros(0), torch.zeros(0)
    assert _torch.storage_id(first) != _torch.storage_id(second)


def test_changes_in_place_are_counted_where_torch_counts_them():
    value = torch.zeros(2)
    before = _torch.changes(value)
    value.add_(1)
    assert _torch.changes(value) > before
    with torch.inference_mode():
        assert _torch.changes(torch.zeros(2)) == 0


def test_gamma_draws_follow_the_generator_and_have_the_right_mean():
    concentration = torch.full((20_000,), 3.0, dtype=torch.float64)
    first, again = (
        _torch.standard_gamma(concentration, torch.Generator().manual_seed(1)) for _ in range(2)
    )
    assert torch.equal(first, again)
    assert first.mean() == pytest.approx(3.0, abs=0.05)


def _fabric(**options):
    fabric = pytest.importorskip("lightning_fabric")
    return fabric.Fabric(accelerator="cpu", devices=1, **options)


def test_gradients_may_be_taken_without_fabric_and_in_its_precision():
    fabric = _fabric(precision="bf16-mixed")
    network = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    wrapped, _ = _torch.setup_as_compiled(fabric, network, optimizer)
    x = torch.randn(4, 3)
    with pytest.raises(RuntimeError, match=r"fabric\.backward"):
        torch.autograd.grad(wrapped(x).sum(), network.weight)
    outputs = _torch.forward_without_ban(fabric, wrapped, x)
    (gradient,) = torch.autograd.grad(outputs.sum(), network.weight)
    assert torch.equal(outputs, wrapped(x))
    assert not torch.equal(outputs, network(x))
    assert gradient.abs().sum() > 0


def test_a_compiled_module_stays_inside_the_wrapper():
    fabric = _fabric()
    network = nn.Linear(3, 2)
    compiled = torch.compile(network, backend="eager")
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    wrapped, _ = _torch.setup_as_compiled(fabric, compiled, optimizer)
    assert not isinstance(wrapped, type(compiled))
    assert compiled in list(wrapped.modules())


def test_one_process_has_no_children():
    assert _torch.child_processes(_fabric()) == []


def test_modules_that_were_compiled_are_told_from_plain_ones():
    plain, itself = nn.Linear(2, 2), nn.Linear(2, 2)
    itself.compile(backend="eager")
    assert not _torch.is_compiled(plain)
    assert _torch.is_compiled(itself)
    assert _torch.is_compiled(torch.compile(plain, backend="eager"))
