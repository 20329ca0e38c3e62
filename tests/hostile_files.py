"""Model files with one thing changed that no fit writes; run by ``test_hostile_files``, which ends it if it hangs."""

import io
import json
import sys
import warnings
import zipfile

import numpy as np

from treewright.exceptions import TreewrightError
from treewright.models.labeller_files import read_labeller

EXTREMES = (-1, 0, 1, 2, 7, 2**31 - 1, -(2**63), 1e300, np.nan)


def changed_array(content, rng):
    """The same array with one number changed, or with a row too few."""
    array = np.load(io.BytesIO(content))
    if not array.size or array.dtype.kind not in "iufbV":
        return None
    if rng.random() < 0.1:
        array = array[:-1] if array.ndim else array
    else:
        array = array.copy()
        flat = array.reshape(-1)
        place, value = rng.integers(len(flat)), EXTREMES[rng.integers(len(EXTREMES))]
        part = flat[rng.choice(array.dtype.names)] if array.dtype.names else flat
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            part[place] = np.array(value, dtype=np.float64).astype(part.dtype)
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def turned_back(content):
    """The same nodes, the left child of the root being the root; None where it has none."""
    nodes = np.load(io.BytesIO(content))
    name = next((name for name in ("left_child", "left") if name in (nodes.dtype.names or ())), None)
    if name is None or len(nodes) < 3:
        return None
    nodes[name][0] = 0
    out = io.BytesIO()
    np.save(out, nodes)
    return out.getvalue()


def changed_schema(content, rng):
    """The same description with one plain value changed."""
    schema, found = json.loads(content), []
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            found += [part] if part.get("is_json") else []
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
    one = found[rng.integers(len(found))]
    one["content"] = json.dumps([-1, 0, 10**9, None, "x", 1e308][rng.integers(6)])
    return json.dumps(schema).encode()


def mutated(path, target, seed):
    """Write a file with one entry changed; say which. With a seed below 0 all trees lead back to their roots."""
    rng = np.random.default_rng(abs(seed))
    with zipfile.ZipFile(path) as outer:
        document, inner = outer.read("model.json"), zipfile.ZipFile(io.BytesIO(outer.read("labeller.skops")))
    names = inner.namelist()
    changed = {}
    if seed < 0:
        changed = {name: turned_back(inner.read(name)) for name in names if name.endswith(".npy")}
        changed = {name: content for name, content in changed.items() if content is not None}
    while not changed:
        name = "schema.json" if rng.random() < 0.2 else names[rng.integers(len(names))]
        content = (changed_schema if name == "schema.json" else changed_array)(inner.read(name), rng)
        changed = {} if content is None else {name: content}
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for entry in names:
            archive.writestr(entry, changed.get(entry) or inner.read(entry))
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("model.json", document)
        archive.writestr("labeller.skops", packed.getvalue())
    return min(changed)


def main(path, target, first, last):
    """Read and ask each of some files."""
    warnings.simplefilter("ignore")
    rows = np.random.default_rng(0).normal(size=(40, 3))
    for seed in range(int(first), int(last)):
        name = mutated(path, target, seed)
        print(seed, name, end=" ", flush=True)
        try:
            model, _ = read_labeller(target)
            model.predict(rows), model.predict_proba(rows), model.transduce(rows, {1: 7})
        except TreewrightError as error:
            print(type(error).__name__, str(error)[-120:].replace("\n", " "), flush=True)
        else:
            print("read", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
