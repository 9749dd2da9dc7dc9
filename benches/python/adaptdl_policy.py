"""Plans rounds with the policy of the released AdaptDL scheduler (adaptdl-sched), one process, one thread.

Usage: adaptdl_policy.py REPEATS < ROUNDS.json

ROUNDS.json holds a list of rounds, each with `num_nodes`, `gpus_per_node` and `jobs`; a job has `perf_params` (a
list in AdaptDL's order), `grad_params` (`sqr`, `var`), `init_batch_size`, `max_batch_size`, `atomic_bsz_range`,
`max_replicas`, `age_secs` and `holds` (node numbers, one for each replica). Prints JSON: for each round the
allocations of the first repeat, in the same form, and for every repeat the CPU seconds of the whole call, the
jobs' speed-up functions included, and of the search alone.

The driver is ours; what it calls is theirs, unchanged.
"""

import datetime
import json
import sys
import time
import warnings

# The release uses names that newer releases of what it builds on announce to drop.
warnings.simplefilter("ignore")

import numpy as np
import pymoo.config

# A reminder that parts of it are not compiled, once for each process; it would be mixed up with the result.
pymoo.config.Config.show_compile_hint = False

import pymoo
import scipy
from adaptdl.goodput import GoodputFunction, GradParams, PerfParams
from adaptdl_sched.policy.pollux import PolluxPolicy
from adaptdl_sched.policy.speedup import SpeedupFunction
from adaptdl_sched.policy.utils import JobInfo, NodeInfo
from pymoo.util.function_loader import is_compiled

GPU = "nvidia.com/gpu"


def speedup_of(job):
    grad_params = GradParams(job["grad_params"]["sqr"], job["grad_params"]["var"])
    goodput = GoodputFunction(PerfParams(*job["perf_params"]), grad_params, job["init_batch_size"])
    return SpeedupFunction(goodput, job["max_batch_size"], tuple(job["atomic_bsz_range"]), accumulation=True)


def plan(round_):
    """One call with nothing remembered, as a scheduler makes it after a start."""
    now = datetime.datetime(2021, 7, 14)
    before = time.process_time()
    jobs = {}
    for key, job in enumerate(round_["jobs"]):
        submitted = now - datetime.timedelta(seconds=job["age_secs"])
        jobs[key] = JobInfo({GPU: 1}, speedup_of(job), submitted, 0, job["max_replicas"])
    node = NodeInfo({GPU: round_["gpus_per_node"]}, preemptible=False)
    nodes = {key: node for key in range(round_["num_nodes"])}
    holds = {key: job["holds"] for key, job in enumerate(round_["jobs"])}
    prepared = time.process_time()
    allocations, _ = PolluxPolicy().optimize(jobs, nodes, holds, node)
    after = time.process_time()
    return allocations, after - before, after - prepared


def main():
    repeats = int(sys.argv[1])
    rounds = json.load(sys.stdin)
    results = [{"secs": [], "search_secs": []} for _ in rounds]
    for repeat in range(repeats):
        for index, (round_, result) in enumerate(zip(rounds, results)):
            np.random.seed(1000 * repeat + index)
            allocations, secs, search_secs = plan(round_)
            result["secs"].append(secs)
            result["search_secs"].append(search_secs)
            if repeat == 0:
                result["allocations"] = [allocations.get(key, []) for key in range(len(round_["jobs"]))]
    versions = {
        "python": sys.version.split()[0],
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "pymoo": pymoo.__version__,
        "compiled": bool(is_compiled()),
    }
    json.dump({"versions": versions, "rounds": results}, sys.stdout, allow_nan=False)


if __name__ == "__main__":
    main()
