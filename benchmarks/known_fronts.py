"""Draw what each discrete method finds on problems whose front is known in closed form.

    python benchmarks/known_fronts.py [METHOD ...]

One picture per method, docs/pictures/known-fronts-METHOD.png, and one line per problem: the
largest distance of a point from the front. Minutes on a laptop; settings are below.
"""

import sys
from functools import partial
from pathlib import Path

import torch
from matplotlib.figure import Figure
from torch.optim.lr_scheduler import CosineAnnealingLR

import lorpman as lp
from lorpman.front.front import Front
from lorpman.front.plot_style import save_figure
from lorpman.lab.datasets.splits import batches
from lorpman.lab.methods.registry import METHODS
from lorpman.lab.problems.known_fronts import KNOWN, distance_to_front
from lorpman.lab.problems.registry import get_problem

EPOCHS = 20  # of 20 steps, Adam, cosine schedule
# Far from its ray EPO's steps are tiny: it allows hardly any loss to rise.
LONGER = {"epo": 80}
RATE = 0.03
# PMTL is published with SGD; Adam rescales its directions and ends outside the cones.
SGD = {"pmtl": 0.1}
OWN = {
    "epo": {"members": 5},
    "pmtl": {"members": 5},
    "moo-svgd": {"members": 5, "bandwidth": 0.005},
    "png": {"members": 5, "tolerance": 1e-3},
    "gmooar-u": {"members": 7, "conditioning": "low-rank", "rank": 1, "kernel_width": 0.3},
    "gmooar-hv": {"members": 7, "conditioning": "low-rank", "rank": 1},
}
TITLES = {
    "vlmop2": "VLMOP2",
    "zdt1": "ZDT1",
    "quadratic": "two quadratics",
    "ellipses": "two ellipses",
}
PICTURES = Path(__file__).parent.parent / "docs" / "pictures"


def find(problem: str, method: str) -> Front:
    """The front that ``method`` finds on ``problem``."""
    row, chosen = get_problem(problem), METHODS[method]
    torch.manual_seed(0)
    own = chosen.settings(**OWN[method])
    model = chosen.manifold(row.make_network(None), 2, None, own)
    data = row.load(Path(), None)
    epochs = LONGER.get(method, EPOCHS)
    lp.fit(
        model,
        row.make_tasks(None),
        batches(data.train, 1),
        epochs=epochs,
        objective=chosen.rule(own),
        optimizer=partial(torch.optim.SGD, lr=SGD[method])
        if method in SGD
        else partial(torch.optim.Adam, lr=RATE),
        scheduler=lambda o: CosineAnnealingLR(o, epochs),
        progress=False,
        seed=0,
    )
    return lp.evaluate(model, row.make_tasks(None), batches(data.test, 1), label=method)


def _off_the_rays(front: Front) -> tuple[float, float]:
    """In degrees, over all points: the largest angle from the ray that was asked for, and how
    far out of the cone of directions that are nearest to this ray."""
    assert front.losses is not None
    asked = 1 / front.alphas.double().clamp_min(1e-4)
    cosines = torch.cosine_similarity(front.losses[:, None], asked[None], 2).clamp(-1, 1)
    angles = torch.rad2deg(cosines.acos())
    own = angles.diagonal()
    return float(own.max()), float((own - angles.amin(1)).max()) / 2


def draw(method: str) -> None:
    """One panel per problem: the true front, the points found, the rays that were asked for."""
    figure = Figure(figsize=(14, 4.9), layout="constrained")
    for axes, problem in zip(figure.subplots(1, len(KNOWN)), KNOWN, strict=True):
        front = find(problem, method)
        assert front.losses is not None
        true = KNOWN[problem].front(torch.linspace(0, 1, 401, dtype=torch.float64))
        limit = 1.15 * float(true.max())
        axes.plot(true[:, 0], true[:, 1], color="0.72", linewidth=4, label="true front")
        if method in ("epo", "pmtl"):
            for index, alpha in enumerate(front.alphas.double()):
                ray = 10 * limit / alpha.clamp_min(1e-6) * alpha.clamp_min(1e-6).min()
                label = "asked preference" if index == 0 else None
                axes.plot([0, ray[0]], [0, ray[1]], "--", color="0.5", linewidth=0.8, label=label)
        axes.plot(*front.losses.T, "o", color="#D55E00", markersize=7, label=method)
        off = distance_to_front(front.losses, KNOWN[problem]).max().item()
        note = ""
        if method == "epo":
            note = f",\n{_off_the_rays(front)[0]:.1f}° from the asked ray"
        if method == "pmtl":
            note = f",\n{_off_the_rays(front)[1]:.1f}° out of the asked cone"
        axes.set_title(f"{TITLES[problem]}\nat most {off:.0g} from the front{note}", fontsize=10)
        # Members that spread along a wall of weakly optimal points must be seen.
        ends = [max(limit, 1.05 * float(end)) for end in front.losses.amax(0)]
        axes.set(xlim=(-0.04 * ends[0], ends[0]), ylim=(-0.04 * ends[1], ends[1]))
        axes.set(xlabel="$f_1$  (lower is better)", box_aspect=1)
        print(f"{method:<10} {problem:<10} {off:.2g}{' '.join(note.split())}", flush=True)
    figure.axes[0].set_ylabel("$f_2$  (lower is better)")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    PICTURES.mkdir(parents=True, exist_ok=True)
    save_figure(figure, PICTURES / f"known-fronts-{method}.png")


if __name__ == "__main__":
    torch.set_num_threads(1)
    for name in sys.argv[1:] or OWN:
        draw(name)
