"""The first fit of each model in a process of its own, and the second.

    python benchmarks/first_fits.py

A table of 300 rows and 10 features, two classes; 30 % of the labels where a model takes rows without one; limits 5 s.
Seconds are of the processor: importing the model, its first fit, its second on the same rows.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import warnings

WITHOUT_MARKS = {"BinOCTClassifier", "FairOCTClassifier", "OCTClassifier", "OCTHClassifier", "OCTSVMClassifier"}
WITHOUT_MARKS |= {"RESVMClassifier", "SVM1ODTClassifier", "TAOClassifier"}
WITH_TOTALS = {"C2RFClassifier", "S2OCTClassifier", "TotalsClassifier"}
MODELS = sorted(WITHOUT_MARKS | WITH_TOTALS | {"LapSVMClassifier", "LapTAOClassifier", "SSCTClassifier"})


def measured(name: str) -> dict[str, float]:
    """Seconds of one model, in this process."""
    import numpy as np
    import sklearn.ensemble  # what scikit-learn takes to import is not ours

    rng = np.random.default_rng(0)
    X, hidden = rng.normal(size=(300, 10)), rng.random(300) < (0.0 if name in WITHOUT_MARKS else 0.7)
    y = (X[:, 0] + 0.5 * X[:, 1] + 0.3 * rng.normal(size=300) > 0).astype(np.int64)
    given = {"totals": {1: int(y[hidden].sum())}} if name in WITH_TOTALS else {}
    seconds, start = {"scikit-learn": time.process_time()}, time.process_time()
    import treewright

    kind = getattr(treewright, name)
    seconds["import"] = time.process_time() - start
    settings = {"random_state": 0} | ({"time_limit": 5.0} if "time_limit" in kind().get_params() else {})
    for fit in ("first", "second"):
        start = time.process_time()
        kind(**settings).fit(X, np.where(hidden, -1, y), **given)
        seconds[fit] = time.process_time() - start
    assert sklearn.ensemble is not None
    return seconds


def main() -> None:
    """A process a model, and the table."""
    if len(sys.argv) == 2:
        warnings.simplefilter("ignore")
        print(json.dumps(measured(sys.argv[1])))
        return
    print("| model | import | first fit | second | first less second |\n|---|---|---|---|---|")
    for name in MODELS:
        done = subprocess.run([sys.executable, __file__, name], capture_output=True, text=True, check=True)
        of = json.loads(done.stdout)
        more = of["first"] - of["second"]
        print(f"| {name} | {of['import']:.2f} | {of['first']:.2f} | {of['second']:.2f} | {more:.2f} |", flush=True)


if __name__ == "__main__":
    main()
