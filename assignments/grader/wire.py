"""Plain data between grader and sandbox: JSON frames, no pickle, so reading can do nothing else.

Both sides use this file; the sandbox gets a read-only copy of it.
"""

import base64
import json
import struct
from fractions import Fraction

import numpy as np

LARGEST = 32 * 2**20  # bytes of one frame


def pack(value):
    """Plain values as JSON; a generator travels as its state, a function as its name."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(value)
    if isinstance(value, (complex, np.complexfloating)):
        return pack(np.asarray(value))
    if isinstance(value, (list, tuple)):
        return {"list" if type(value) is list else "tuple": [pack(v) for v in value]}
    if isinstance(value, dict):
        return {"dict": [[pack(k), pack(v)] for k, v in value.items()]}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
        data = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
        return {"array": [value.dtype.str, list(value.shape), data]}
    if isinstance(value, np.ndarray) and value.dtype == object:
        return pack(value.tolist())
    if isinstance(value, Fraction):
        return {"fraction": [value.numerator, value.denominator]}
    if hasattr(value, "to_numpy"):  # a pandas Series, Index or DataFrame
        return pack(value.to_numpy())
    if isinstance(value, np.random.Generator):
        source, seed = value.bit_generator, value.bit_generator.seed_seq
        key = list(seed.spawn_key)
        return {"rng": [source.state, seed.entropy, key, seed.n_children_spawned]}
    if callable(value) and hasattr(value, "__name__"):
        return {"name": value.__name__}
    raise TypeError(
        f"a value of type {type(value).__name__} can't be handed in: "
        "use numbers, fractions, strings, lists, tuples, dicts, arrays or pandas columns"
    )


def unpack(data, names=None):
    """The inverse of `pack`; `names` finds a function by its name, where functions are welcome."""
    if not isinstance(data, dict):
        return data
    ((kind, body),) = data.items()
    if kind in ("list", "tuple"):
        items = [unpack(v, names) for v in body]
        return items if kind == "list" else tuple(items)
    if kind == "dict":
        return {unpack(k, names): unpack(v, names) for k, v in body}
    if kind == "array":
        dtype = np.dtype(body[0])
        if dtype.kind not in "biufc":
            raise ValueError("an array of numbers is expected")
        return np.frombuffer(base64.b64decode(body[2]), dtype).reshape(body[1]).copy()
    if kind == "fraction":
        if not all(type(part) is int for part in body):  # a text could stand for any number
            raise ValueError("a fraction has whole numbers")
        return Fraction(*body)
    if kind == "rng" and names is not None:
        state, entropy, key, children = body
        seed = np.random.SeedSequence(entropy, spawn_key=key, n_children_spawned=children)
        rng = np.random.default_rng(seed)
        rng.bit_generator.state = state
        return rng
    if kind == "name" and names is not None:
        return names[body]
    raise ValueError("numbers, strings, lists, tuples, dicts or arrays are expected")


def send(stream, message):
    """Write one frame."""
    data = json.dumps(message).encode()
    stream.write(struct.pack(">I", len(data)) + data)
    stream.flush()


def receive(stream):
    """Read one frame; EOFError when the other side is gone or the frame is too long."""
    head = stream.read(4)
    if head is None or len(head) < 4 or struct.unpack(">I", head)[0] > LARGEST:
        raise EOFError("the other side ended or sent too much")
    size = struct.unpack(">I", head)[0]
    data = stream.read(size)
    if data is None or len(data) < size:
        raise EOFError("the other side ended")
    return json.loads(data)
