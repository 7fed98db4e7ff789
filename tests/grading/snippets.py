"""Fifty small answers in new and old syntax: each defines `f` so that `f(2) == 4`, where it can be
read. Python 3.11 refuses `NEW`, which later ones learned; `OLD` only looks new."""

# ruff: noqa: E501

BODY = "def f(x):\n    return x * x\n"

NEW = [  # of Python 3.12
    "type Number = float\n" + BODY,
    "type Pair[T] = tuple[T, T]\n" + BODY,
    "def f[T](x: T) -> T:\n    return x * x",
    "def f[T: (int, float)](x: T):\n    return x * x",
    "def f[*Ts](x, *args: *Ts):\n    return x * x",
    "class Box[T]:\n    value: T\n" + BODY,
    BODY + 'names = ["a"]\nprint(f"{", ".join(names)}")',
    BODY + "names = dict(a=1)\nprint(f'{names['a']}')",
    BODY + "print(f'''{'''a'''}''')",
    BODY + "names = ['a']\nprint(f\"{'\\n'.join(names)}\")",
    BODY + "print(f'{\"\\u00e9\"}')",
    BODY + "print(f'{\n1\n}')",
    BODY + "print(f'{[\n1,\n2,\n]} and more')",
    BODY + 'print(f"""{1  # one\n}""")',
    BODY + 'print(f"{f"{1}"}")',
    BODY + 'print(f"{f"{f"{1}"}"}")',
    BODY + 'print(f"{f\'{f"{1}"}\'}")',
    BODY + 'print(rf"{"a"}")',
    BODY + "print(F'{'a'!r:>5}')",
    BODY + "width = {'w': 5}\nprint(f'{1:{width['w']}}')",
    "def f(x):\n    text = f'{'a' if x else 'b'}'\n    return x * x",
    "def f(x):\n    print('a' f'{'b'}')\n    return x * x",
    # of Python 3.13
    "class Box[T = int]:\n    pass\n" + BODY,
    "def f[T = float](x: T):\n    return x * x",
    "type Number[T = int] = T\n" + BODY,
    # of Python 3.14
    "def f(x):\n    try:\n        return x * x\n    except KeyError, TypeError:\n        return 0",
    BODY + "try:\n    f(1)\nexcept ValueError, OSError:\n    pass",
    BODY + "try:\n    f(1)\nexcept* ValueError, OSError:\n    pass",
    BODY + "name = 1\nprint(t'{name}')",
    BODY + "print(t'plain')",
    BODY + 'print(rt"{1}")',
]

OLD = [
    BODY + "names = ['a']\nprint(f\"{', '.join(names)}\")",
    BODY + "print(f'a\\n{1}\\t{2}')",
    BODY + "print(f'a {1} \\\n b')",
    BODY + "print(f'{1}'\n      f'{2}')",
    BODY + "print(f'''{\n1\n}''')",
    BODY + "print(f'''{'a'} \"{1}\" ''')",
    BODY + "print(f\"{'#'}\")",
    BODY + "print(f'{1!r:>{5}}', f'{{}}', f'{1 = }')",
    BODY + "print(rf'\\d{1}')",
    BODY + "print(f\"{f'{1}'}\")",
    BODY + "print(f\"{'a' 'b'}\")  # a comment after it",
    BODY + "print(f\"{ {'a': 1}['a'] }\")",
    "def f(x: List[float]) -> NDArray:\n    return x * x",
    "def f(x: 'anything', y: Optional[int] = None):\n    z: Float = x\n    return z * z",
    "class Point:\n    x: Missing\n" + BODY,
    "def f(x):\n    match x:\n        case int(y) if (z := y):\n            return z * z",
    "def f(x, /, *, y=1):\n    return x * x",
    "def f(x):\n    try:\n        return x * x\n    except (KeyError, TypeError):\n        return 0",
    BODY + "try:\n    f(1)\nexcept* (ValueError, OSError):\n    pass",
    BODY + "import contextlib as c\nwith (c.suppress(OSError) as a, c.suppress(ValueError)):\n    pass",
    BODY + "names = {}\nnames[*(1, 2)] = 3",
    BODY + "type = 1\nmatch = type\nt = 'x'",
    "%matplotlib inline\n" + BODY,
    "def f(x) return x * x",
    "def f(x):\n    return (x",
]  # fmt: skip
