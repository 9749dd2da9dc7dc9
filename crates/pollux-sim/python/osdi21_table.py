"""Bakes which simplex SciPy interpolates in, for the step times of the OSDI'21 artifact.

Usage: osdi21_table.py TRACES TABLE.json

For placements it did not measure, the artifact (petuum/adaptdl, branch osdi21-artifact) interpolates linearly over a
Delaunay triangulation of (nodes, replicas, local batch). The points lie on a grid, so that the triangulation is one of
many and neighbouring simplices do not always share whole faces: on such a face the value depends on the simplex the
search ends in. This tool asks SciPy for every whole batch and writes down where it ended. TABLE.json holds, for each
application,

  points     nodes, replicas and local batch of each measurement: `placements.csv` merged by these three and sorted,
             then the rows of `scalability.csv` in their order,
  simplices  of those in use, the four corners (indices into `points`),
  transforms of each, SciPy's affine map to the first three barycentric coordinates: a matrix by rows, then the
             point it is relative to,
  lines      for each (nodes, replicas) that has any: alternating first batch and simplex; each simplex holds until the
             next first batch, and -1 means outside.

Values are not in it; whoever reads the table takes them from the traces.
"""

import csv
import json
import pathlib
import sys

import numpy as np
import scipy
from scipy.interpolate import LinearNDInterpolator
from scipy.spatial import Delaunay

VERSION = 1
SCIPY = "1.10.1"
MAX_NODES = 16
MAX_REPLICAS = 64


def measurements(folder):
    """Points and their (step, sync) seconds, in the artifact's order."""
    groups = {}
    for row in rows(folder / "placements.csv"):
        digits = [int(digit) for digit in row["placement"]]
        groups.setdefault((len(digits), sum(digits), int(row["local_bsz"])), []).append(seconds(row))
    points = sorted(groups)
    values = [np.mean(groups[point], axis=0) for point in points]
    for row in rows(folder / "scalability.csv"):
        points.append(tuple(int(row[name]) for name in ("num_nodes", "num_replicas", "local_bsz")))
        values.append(seconds(row))
    return np.array(points, dtype=float), np.array(values)


def rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def seconds(row):
    return float(row["step_time"]), float(row["sync_time"])


class Search:
    """SciPy's answers for single points, many at a time."""

    def __init__(self, points, values):
        self.triangulation = Delaunay(points)
        self.values = values
        self.interpolator = LinearNDInterpolator(self.triangulation, values)
        # SciPy's search starts where the last one of the same call ended, the artifact's always at simplex 0. Between
        # any two points we therefore look up one in the middle of simplex 0.
        self.home = points[self.triangulation.simplices[0]].mean(axis=0)
        self.can_go_home = not np.isnan(self.triangulation.transform[0]).any()

    def each_from_the_start(self, function, queries):
        if not self.can_go_home:
            return np.array([function(query[None])[0] for query in queries])
        there_and_back = np.repeat(queries, 2, axis=0)
        there_and_back[1::2] = self.home
        return function(there_and_back)[::2]

    def simplices(self, queries):
        """The simplex of each query, -1 outside. Checked against the interpolator, bit for bit."""
        found = self.each_from_the_start(self.triangulation.find_simplex, queries)
        expected = self.each_from_the_start(self.interpolator, queries)
        got = self.evaluate(found, queries)
        same = (got == expected).all(axis=1) | (np.isnan(got).all(axis=1) & np.isnan(expected).all(axis=1))
        for index in np.flatnonzero(~same):
            found[index] = self.simplex_with_value(queries[index], expected[index])
        return found

    def evaluate(self, simplices, queries):
        transform = self.triangulation.transform[simplices]
        relative = queries - transform[:, 3]
        # Term by term, as SciPy adds them up.
        weights = [sum(transform[:, i, j] * relative[:, j] for j in range(3)) for i in range(3)]
        weights.append(1.0 - weights[0] - weights[1] - weights[2])
        corners = self.values[self.triangulation.simplices[simplices]]
        value = sum(weights[corner][:, None] * corners[:, corner] for corner in range(4))
        value[simplices == -1] = np.nan
        return value

    def simplex_with_value(self, query, value):
        """The search of the interpolator is a little more tolerant: find the simplex that gave its value."""
        if np.isnan(value).all():
            return -1
        everyone = np.arange(self.triangulation.nsimplex)
        got = self.evaluate(everyone, np.repeat(query[None], len(everyone), axis=0))
        matching = np.flatnonzero((got == value).all(axis=1))
        if len(matching) == 0:
            sys.exit(f"no simplex gives {value} at {query}")
        return matching[0]


def lines(search, points):
    """For each (nodes, replicas): the first batch of each run of one simplex."""
    lowest, highest = int(points[:, 2].min()), int(points[:, 2].max())
    batches = np.arange(lowest, highest + 1)
    answer = []
    for nodes in range(1, MAX_NODES + 1):
        for replicas in range(nodes, MAX_REPLICAS + 1):
            queries = np.empty((len(batches), 3))
            queries[:] = nodes, replicas, 0
            queries[:, 2] = batches
            simplices = search.simplices(queries)
            if (simplices == -1).all():
                continue
            firsts = np.flatnonzero(np.diff(simplices, prepend=-2))
            runs = [(int(batches[first]), int(simplices[first])) for first in firsts]
            runs.append((highest + 1, -1))
            answer.append((nodes, replicas, runs))
    return answer


def bake(folder):
    points, values = measurements(folder)
    search = Search(points, values)
    found = lines(search, points)
    used = sorted({simplex for _, _, runs in found for _, simplex in runs} - {-1})
    renamed = {old: new for new, old in enumerate(used)} | {-1: -1}
    triangulation = search.triangulation
    return {
        "points": points.astype(int).tolist(),
        "simplices": triangulation.simplices[used].tolist(),
        "transforms": triangulation.transform[used].reshape(len(used), 12).tolist(),
        "lines": [
            {
                "nodes": nodes,
                "replicas": replicas,
                "runs": [number for first, simplex in runs for number in (first, renamed[simplex])],
            }
            for nodes, replicas, runs in found
        ],
    }


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    if scipy.__version__ != SCIPY:
        sys.exit(f"the table is SciPy {SCIPY}'s, and this is {scipy.__version__}: see requirements.txt")
    traces, table = map(pathlib.Path, sys.argv[1:])
    applications = {}
    for folder in sorted(path.parent for path in traces.glob("*/placements.csv")):
        applications[folder.name] = bake(folder)
        n_runs = sum(len(line["runs"]) // 2 for line in applications[folder.name]["lines"])
        print(f"{folder.name}: {len(applications[folder.name]['simplices'])} simplices, {n_runs} runs", flush=True)
    if not applications:
        sys.exit(f"no application's placements.csv in {traces}")
    table.parent.mkdir(parents=True, exist_ok=True)
    unfinished = table.with_suffix(".unfinished")
    unfinished.write_text(json.dumps({"version": VERSION, "scipy": SCIPY, "applications": applications}))
    unfinished.replace(table)


if __name__ == "__main__":
    main()
