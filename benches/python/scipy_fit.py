"""Fits step times the way the OSDI'21 artifact does: L-BFGS-B of SciPy, gradients by autograd.

Usage: scipy_fit.py CASES.json REPEATS

CASES.json holds a list of cases, each with equally long lists `num_nodes`, `num_replicas`, `atomic_bsz`,
`accum_step_time` and `optim_step_time`. Prints JSON: for each case the least value of the objective, the
parameters there, and the CPU seconds of every repeat.

The objective, start, bounds and pinned parameters are the artifact's; the code is ours.
"""

import json
import math
import sys
import time

import autograd
import autograd.numpy as np
import scipy
import scipy.optimize

FLOOR = 1e-8

# The artifact's order of parameters.
ALPHA_C, BETA_C, ALPHA_N, BETA_N, ALPHA_R, BETA_R, GAMMA = range(7)


def rmse(predicted, observed):
    return np.sqrt(((predicted - observed) ** 2).mean())


def objective(params, num_nodes, num_replicas, atomic_bsz, accum_step_time, optim_step_time):
    """Root mean squared log errors of both times, and the artifact's regularisers."""
    gamma = params[GAMMA]
    compute = params[ALPHA_C] + params[BETA_C] * atomic_bsz
    regimes = [num_nodes > 1, num_replicas > 1]
    offset = np.select(regimes, [params[ALPHA_N], params[ALPHA_R]], FLOOR)
    slope = np.select(regimes, [params[BETA_N], params[BETA_R]], FLOOR)
    network = offset + slope * np.maximum(num_replicas - 2, FLOOR)
    log_last = np.log(compute**gamma + network**gamma) / gamma
    return (
        rmse(np.log(compute), np.log(accum_step_time))
        + rmse(log_last, np.log(optim_step_time))
        + 1e-3 * (gamma - 1) ** 2
        + 1e-2 * ((params[BETA_N] / params[ALPHA_N]) ** 2 + (params[BETA_R] / params[ALPHA_R]) ** 2)
    )


def fit(case):
    """One fit from nothing, as the artifact runs it whenever a job has seen something new."""
    num_nodes = np.array(case["num_nodes"])
    num_replicas = np.array(case["num_replicas"])
    atomic_bsz = np.array(case["atomic_bsz"])
    accum_step_time = np.array(case["accum_step_time"])
    optim_step_time = np.array(case["optim_step_time"])

    start = [1e-1, 1e-2] * 3 + [1.0 + 1e-3]
    lower = [FLOOR] * 6 + [1.0]
    upper = [np.inf] * 6 + [10.0]

    def pin(index, value):
        start[index] = lower[index] = upper[index] = value

    if len(np.unique(atomic_bsz)) == 1:
        pin(ALPHA_C, np.mean(accum_step_time) / 2)
    if not np.any(num_nodes > 1):
        pin(ALPHA_N, FLOOR)
        pin(BETA_N, FLOOR)
    if not np.any((num_nodes == 1) & (num_replicas > 1)):
        pin(ALPHA_R, FLOOR)
        pin(BETA_R, FLOOR)
    if not np.any(num_replicas > 2):
        pin(BETA_N, FLOOR)
        pin(BETA_R, FLOOR)

    return scipy.optimize.minimize(
        objective,
        start,
        args=(num_nodes, num_replicas, atomic_bsz, accum_step_time, optim_step_time),
        method="L-BFGS-B",
        jac=autograd.grad(objective),
        bounds=scipy.optimize.Bounds(lower, upper, keep_feasible=True),
    )


def finite(value):
    value = float(value)
    return value if math.isfinite(value) else None


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        cases = json.load(file)
    repeats = int(sys.argv[2])
    results = [{"secs": []} for _ in cases]
    # Repeats outermost, so that a slow spell of the machine falls on all cases alike. The first round warms
    # caches and does not count.
    for repeat in range(-1, repeats):
        for case, result in zip(cases, results):
            before = time.process_time()
            found = fit(case)
            secs = time.process_time() - before
            if repeat >= 0:
                result["secs"].append(secs)
            result["objective"] = finite(found.fun)
            result["params"] = [finite(value) for value in found.x]
            result["evaluations"] = int(found.nfev)
    versions = {"python": sys.version.split()[0], "numpy": np.__version__, "scipy": scipy.__version__}
    json.dump({"versions": versions, "cases": results}, sys.stdout, allow_nan=False)


if __name__ == "__main__":
    main()
