"""Small specifications whose functions other processes can import; run as a script, a benchmark with slow rows."""

import os
import signal
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from sklearn.tree import DecisionTreeClassifier

import harness
from harness import Data, DataSet, Instance, Method, Sample, Specification


def with_harness():
    """The environment of a process that runs a script that is not in benchmarks/."""
    paths = (str(Path(__file__).parents[2] / "benchmarks"), os.environ.get("PYTHONPATH", ""))
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


def two_blobs(n=40, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    return Data(rng.normal(size=(n, 2)) + 3.0 * y[:, None], y.astype(np.int64))


def no_data():
    raise OSError("the disk is gone")


def slow_data(folder):
    """Counts its loads in a folder."""
    with open(os.path.join(folder, "loads"), "a") as file:
        file.write("x")
    return two_blobs()


@dataclass
class Constant:
    """Predicts one class; what else it does on the way is a parameter."""

    label: int = 0
    deed: str = ""
    seconds: float = 0.0
    stop: str = ""

    def fit(self, X, y, **given):
        while self.seconds and not os.path.exists(self.stop):
            time.sleep(min(self.seconds, 0.05))
            self.seconds = max(0.0, self.seconds - 0.05)
        if self.deed == "raise":
            raise ValueError("no such tree")
        if self.deed == "exit":
            os._exit(3 + self.label)
        if self.deed == "segfault":
            os.kill(os.getpid(), signal.SIGSEGV)
        if self.deed == "interrupt":
            self.status_ = "interrupted"
        self.y = y
        return self

    def predict(self, X):
        return np.full(len(X), self.label)


def a_lock(instance, outcome):
    return {"lock": threading.Lock()}


def what_only_here_is(instance, outcome):
    """A value of a class that the other side cannot find."""
    found = type("Here", (), {})
    found.__module__, sys.modules["here_alone"] = "here_alone", SimpleNamespace(Here=found)
    return {"here": found()}


def one_class_only(data, draw):
    known = data.y == 1
    return Instance(data.X, data.y, known, data.X[~known], data.y[~known], draw)


def specification(*methods, **changes):
    parts = {
        "name": "tiny",
        "data": (DataSet("blobs", two_blobs),),
        "samples": (Sample("simple", harness.partly_labelled, {"share": 0.5}),),
        "methods": methods or (Method("CART", DecisionTreeClassifier, {"random_state": 0}, on=harness.labelled_rows),),
        "metrics": (harness.accuracy,),
        "summary": (harness.GroupTable({"method": "method"}, (harness.count("fits"),)),),
    }
    return Specification(**(parts | changes))


def slow(stop):
    """Six rows, the first two at once and the others slow until the file `stop` is there."""
    quick = [Method(f"quick {k}", Constant) for k in range(2)]
    return specification(*quick, *(Method(f"slow {k}", Constant, {"seconds": 60.0, "stop": stop}) for k in range(4)))


if __name__ == "__main__":
    sys.exit(harness.main(slow(sys.argv[1]), argv=sys.argv[2:]))
