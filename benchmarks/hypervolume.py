"""Time and standard error of the hypervolume of 100 points, by number of objectives.

python benchmarks/hypervolume.py
"""

import time

import numpy as np

import lorpman as lp


def clustered(m: int) -> np.ndarray:
    """Accuracies as of a trained family: tasks differ a lot, points of the front a little."""
    rng = np.random.default_rng(0)
    return (0.6 + 0.35 * rng.random(m)) * (0.93 + 0.07 * rng.random((100, m)))


def main() -> None:
    print(f"{'objectives':>10}  {'seconds':>8}  {'relative error':>14}  method")
    for m in (2, 3, 5, 8, 9, 10, 20, 40):
        began = time.perf_counter()
        value, error, method = lp.hypervolume(clustered(m), 0.0)
        seconds = time.perf_counter() - began
        print(f"{m:>10}  {seconds:>8.3f}  {error / value:>14.2%}  {method}")


if __name__ == "__main__":
    main()
