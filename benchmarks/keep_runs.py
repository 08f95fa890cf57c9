"""Keep what runs found in one JSON, without their directories, weights and pictures.

    python benchmarks/keep_runs.py results/recipe/comparison runs/compare/multimnist
    python benchmarks/keep_runs.py results/multimnist/cosmos-settings runs/cosmos

reads every run directory of a folder. Where ``lorpman compare`` wrote the folder, its table and
picture are kept too; else a table is written, with one line for each run.
"""

import argparse
import shutil
from pathlib import Path
from typing import Any

from lorpman._files import read_json
from lorpman.lab.reproduce.markdown_table import train_command
from lorpman.lab.reproduce.run_record import RunRecord, compact_json, record_run
from lorpman.lab.runs.spec import Spec
from lorpman.lab.settings import TrainingSettings, format_assignments


def changes(run: Path) -> dict[str, Any]:
    """The settings that decide a run's numbers and differ from its preset."""
    about = read_json(run / "run.json", "run")
    scale = about.get("scale", "paper")
    preset = Spec.make(about["problem"], about["method"], about["seed"], {}, scale).settings()
    settings = {k: v for k, v in about["settings"].items() if k not in TrainingSettings.WATCHING}
    return {key: value for key, value in settings.items() if preset[key] != value}


def with_records(comparison: dict[str, Any], folder: Path) -> dict[str, Any]:
    """What ``lorpman compare`` wrote, with the runs themselves in place of their names."""
    rows = [
        {**row, "runs": [record_run(folder / run, changes(folder / run)).to_json()
                         for run in row["runs"]]}
        for row in comparison["rows"]
    ]  # fmt: skip
    return {**comparison, "rows": rows}


def command(comparison: dict[str, Any], settings: list[str]) -> str:
    """The call of ``lorpman compare`` that made it, with these settings."""
    methods, seeds = ([row["method"] for row in comparison["rows"]], comparison["rows"][0]["seeds"])
    parts = ["lorpman compare", comparison["problem"]]
    if comparison.get("recipe"):
        parts += ["--recipe", comparison["recipe"]]
    parts += [word for setting in settings for word in ("--set", setting)]
    parts += ["--methods", ",".join(methods), "--seeds", ",".join(map(str, seeds))]
    return " ".join(parts)


def table(records: dict[str, RunRecord]) -> str:
    """One line for each run: its settings, its hypervolume, and the best score of each task."""
    first = next(iter(records.values()))
    lines = [
        f"Runs on {first.problem}, {first.scale} scale, test split. Made by `lorpman train`, "
        f"for instance `{train_command(first)}`.",
        "",
        "| run | method | settings beside the preset | seed | hypervolume | best scores |",
        "|---|---|---|---:|---:|---|",
    ]
    for name, record in records.items():
        settings = " ".join(format_assignments(record.changes))
        digits = ".4f" if record.hypervolume >= 0.01 else ".2g"
        cells = [name, record.method, settings, str(record.seed), f"{record.hypervolume:{digits}}"]
        lines.append("| " + " | ".join([*cells, best_scores(record)]) + " |")
    return "\n".join(lines) + "\n"


def best_scores(record: RunRecord) -> str:
    """The best score of each task, wherever it is on the front; empty for more than three."""
    columns = zip(record.front.scores.T, record.front.maximise, strict=True)
    best = [(scores.max() if up else scores.min()).item() for scores, up in columns]
    return ", ".join(f"{score:.4f}" for score in best) if len(best) <= 3 else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE",
                        help="what the comparison was told, for its command")  # fmt: skip
    options = parser.parse_args()
    folder, out = options.folder, options.out
    out.parent.mkdir(parents=True, exist_ok=True)
    if (folder / "comparison.json").exists():
        comparison = read_json(folder / "comparison.json", "comparison")
        described = {
            "command": command(comparison, options.set),
            **with_records(comparison, folder),
        }
        text = (folder / "comparison.md").read_text()
        out.with_suffix(".md").write_text(f"{text}\nMade by:\n\n    {described['command']}\n")
        shutil.copyfile(folder / "comparison.png", out.with_suffix(".png"))
    else:
        runs = sorted(path.parent for path in folder.glob("*/run.json"))
        records = {run.name: record_run(run, changes(run)) for run in runs}
        rows = [
            {"label": name, "command": train_command(record), "runs": [record.to_json()]}
            for name, record in records.items()
        ]
        described = {"rows": rows}
        out.with_suffix(".md").write_text(table(records))
    out.with_suffix(".json").write_text(compact_json(described))
    print(out.with_suffix(".json"))


if __name__ == "__main__":
    main()
