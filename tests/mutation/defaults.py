"""Values that a function of a known return type may return, whatever its arguments."""

import itertools

INTEGERS = {f"{sign}{size}" for sign in "ui" for size in ("8", "16", "32", "64", "128", "size")}
CONTAINERS = ("FxHashMap", "FxHashSet", "HashMap", "HashSet", "BTreeMap", "BTreeSet", "VecDeque")


def inside(kind: str) -> list[str]:
    """The arguments of a generic type, or the parts of a tuple."""
    found, depth, part = [], 0, ""
    kind = kind.replace("->", "")
    for c in kind[min(kind.index(c) for c in "<(" if c in kind) + 1 : -1]:
        depth += (c in "<([") - (c in ">)]")
        if c == "," and depth == 0:
            found, part = [*found, part.strip()], ""
        else:
            part += c
    return [*found, part.strip()] if part.strip() else found


def name(kind: str) -> str:
    """The type without its path and its arguments."""
    return kind.split("<")[0].split("::")[-1]


def defaults(kind: str) -> list[str]:
    """Values of a type that is known only by its text; the compiler decides whether they fit."""
    kind = " ".join(kind.split())
    if kind == "()":
        return [""]
    if kind == "bool":
        return ["true", "false"]
    if kind in INTEGERS:
        return ["0", "1"]
    if kind in ("f32", "f64"):
        return ["0.0", "1.0"]
    if kind == "&str":
        return ['""', '"xyzzy"']
    if kind.startswith(("&[", "&'a [")):
        return ["&[]"]
    if kind.startswith(("impl", "&", "!", "dyn", "*")):
        return []
    if kind.startswith("("):
        return [f"({', '.join(v)})" for v in tuples(inside(kind))]
    return generic(kind)


def tuples(parts: list[str]) -> list[tuple[str, ...]]:
    """A few combinations of the parts' values."""
    values = [[value or "()" for value in defaults(part)] for part in parts]
    return list(itertools.islice(itertools.product(*values), 4))


def generic(kind: str) -> list[str]:
    """Values of a type that may have arguments."""
    arguments = inside(kind) if kind.endswith(">") else []
    first = [v or "()" for v in defaults(arguments[0])[:2]] if arguments else []
    match name(kind):
        case "Option":
            return ["None", *(f"Some({v})" for v in first)]
        case "Result":
            return [f"Ok({v})" for v in first]
        case "Vec":
            return ["Vec::new()", *(f"vec![{v}]" for v in first[:1])]
        case "Box" | "Arc":
            return [f"{name(kind)}::new({v})" for v in first]
        case "String":
            return ["String::new()", '"xyzzy".into()']
        case "Self":
            return ["Default::default()"]
        case other if other in CONTAINERS:
            return ["Default::default()"]
    return ["Default::default()"]
