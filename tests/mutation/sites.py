"""Where Rust source can be mutated, and into what."""

import hashlib
import re
from dataclasses import dataclass, field

import tree_sitter
import tree_sitter_rust
from defaults import defaults

PARSER = tree_sitter.Parser(tree_sitter.Language(tree_sitter_rust.language()))

OPERATORS = {
    "==": ["!="],
    "!=": ["=="],
    "<": ["<=", "==", ">"],
    ">": [">=", "==", "<"],
    "<=": ["<", ">"],
    ">=": [">", "<"],
    "&&": ["||"],
    "||": ["&&"],
    "+": ["-", "*"],
    "-": ["+", "/"],
    "*": ["+", "/"],
    "/": ["*", "%"],
    "%": ["/", "+"],
    "&": ["|", "^"],
    "|": ["&", "^"],
    "^": ["|", "&"],
    "<<": [">>"],
    ">>": ["<<"],
    "+=": ["-=", "*="],
    "-=": ["+=", "/="],
    "*=": ["+=", "/="],
    "/=": ["*=", "%="],
    "&=": ["|="],
    "|=": ["&="],
    "^=": ["|="],
}
METHODS = {
    "min": "max",
    "min_by": "max_by",
    "min_by_key": "max_by_key",
    "any": "all",
    "first": "last",
    "is_some": "is_none",
    "is_some_and": "is_none_or",
    "saturating_sub": "saturating_add",
    "fetch_add": "fetch_sub",
}
METHODS |= {b: a for a, b in METHODS.items()}

# Items without code that runs in the shipped program, or with code that only the compiler runs.
SKIPPED = {
    "attribute_item",
    "inner_attribute_item",
    "const_item",
    "static_item",
    "const_block",
    "macro_definition",
    "macro_invocation",
    "enum_item",
    "struct_item",
    "union_item",
    "type_item",
    "use_declaration",
    "parameters",
    "closure_parameters",
    "type_arguments",
    "type_parameters",
    "where_clause",
    "array_type",
}
# Calls that only hint at how much memory may be needed.
CAPACITY = {"with_capacity", "reserve", "try_reserve", "try_reserve_exact"}
TESTS_ONLY = re.compile(rb"#\[cfg\((?:test|loom|all\(test[^\n]*\)|feature[^\n]*)\)\]")


@dataclass
class Mutant:
    """One change: `text` replaces its site while the mutant is on."""

    text: str
    name: str
    file: str = ""
    line: int = 0
    function: str = ""
    key: str = ""


@dataclass
class Site:
    """A byte range of a file that has mutants. `form` is how they are written."""

    start: int
    end: int
    form: str
    mutants: list[Mutant] = field(default_factory=list)


def called(node) -> str:
    """The last name in the path of a call's function."""
    return re.split(r"\W+", node.child_by_field_name("function").text.decode())[-1]


def skips(node) -> bool:
    """Whether an item belongs to tests, or is evaluated at compile time."""
    before = node.prev_named_sibling
    while before is not None and before.type in ("attribute_item", "line_comment"):
        if TESTS_ONLY.match(before.text):
            return True
        before = before.prev_named_sibling
    if node.type == "call_expression":
        return called(node) in CAPACITY
    if node.type == "function_item":
        return any(c.type == "function_modifiers" and b"const" in c.text for c in node.children)
    return node.type in SKIPPED


def short(text: str, most: int = 70) -> str:
    """A piece of source on one line."""
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 3] + "..."


class Finder:
    """The sites of one file."""

    def __init__(self, file: str, source: bytes):
        self.file, self.source, self.sites = file, source, {}
        self.functions, self.owners = [], []

    def find(self) -> list[Site]:
        tree = PARSER.parse(self.source)
        if tree.root_node.has_error:
            raise ValueError(f"{self.file} cannot be parsed")
        self.visit(tree.root_node)
        return sorted(self.sites.values(), key=lambda s: (s.start, -s.end))

    def text(self, start: int, end: int) -> str:
        return self.source[start:end].decode()

    def add(self, start: int, end: int, form: str, text: str, name: str) -> None:
        site = self.sites.setdefault((start, end), Site(start, end, form))
        original = self.text(start, end)
        if any(
            short(text) == short(known, 10**6)
            for known in [original, *(m.text for m in site.mutants)]
        ):
            return
        function = self.functions[-1] if self.functions else None
        line = self.source.count(b"\n", 0, start) + 1
        title = "::".join(
            [*self.owners, *(n.child_by_field_name("name").text.decode() for n in self.functions)]
        )
        body = function.text if function else self.source
        place = start - (function.start_byte if function else 0)
        known = repr((self.file, title, body, place, end - start, text))
        key = hashlib.sha1(known.encode()).hexdigest()[:16]
        site.mutants.append(Mutant(text, name, self.file, line, title, key))

    def replace(self, node, text: str, form: str = "value") -> None:
        name = f"`{short(node.text.decode())}` becomes `{short(text)}`"
        self.add(node.start_byte, node.end_byte, form, text, name)

    def visit(self, node) -> None:
        if skips(node):
            return
        visitor = getattr(self, "in_" + node.type, None)
        if visitor is not None:
            visitor(node)
        is_function = node.type == "function_item"
        owner = self.owner(node)
        if is_function:
            self.functions.append(node)
        self.owners.extend(owner)
        for child in node.children:
            if not (
                node.type == "match_pattern" and child != node.child_by_field_name("condition")
            ):
                if child != node.child_by_field_name("pattern") or node.type == "match_arm":
                    self.visit(child)
        if is_function:
            self.functions.pop()
        if owner:
            self.owners.pop()

    def owner(self, node) -> list[str]:
        """The type or trait whose functions an item contains."""
        if node.type == "impl_item":
            name = node.child_by_field_name("type").text.decode()
            return [re.sub(r"<.*", "", name, flags=re.S)]
        if node.type in ("trait_item", "mod_item"):
            return [node.child_by_field_name("name").text.decode()]
        return []

    # ---- each kind of node ----------------------------------------------------------------------

    def in_function_item(self, node) -> None:
        body = node.child_by_field_name("body")
        kind = node.child_by_field_name("return_type")
        kind = kind.text.decode() if kind else "()"
        inside = short(body.text.decode()[1:-1], 10**6)
        if not inside:
            return
        self.functions.append(node)
        at = body.start_byte + 1
        for value in defaults(kind):
            if value != inside:
                name = f"the body becomes `{value}`" if value else "the body becomes empty"
                self.add(at, at, "body", value, name)
        self.functions.pop()

    def in_binary_expression(self, node) -> None:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        sign = node.child_by_field_name("operator")
        if b"let " in node.text and sign.text in (b"&&", b"||"):
            return
        for other in OPERATORS.get(sign.text.decode(), []):
            # Multiplying or dividing by one leaves the number alone.
            if right.text == b"1" and sign.text in (b"+", b"-") and other in "*/":
                self.replace(node, left.text.decode())
            else:
                self.replace(node, self.spliced(node, sign, other))

    def in_compound_assignment_expr(self, node) -> None:
        sign = node.child_by_field_name("operator")
        for other in OPERATORS.get(sign.text.decode(), []):
            self.replace(node, self.spliced(node, sign, other))
        self.in_assignment_expression(node)

    def in_assignment_expression(self, node) -> None:
        self.add(
            node.start_byte,
            node.end_byte,
            "value",
            "",
            f"`{short(node.text.decode())}` is left out",
        )

    def in_unary_expression(self, node) -> None:
        if node.children[0].type in ("!", "-"):
            self.replace(node, node.children[-1].text.decode())

    def in_boolean_literal(self, node) -> None:
        self.replace(node, "false" if node.text == b"true" else "true")

    def in_range_expression(self, node) -> None:
        last = node.children[-1]
        sign = next(c for c in node.children if c.type in ("..", "..="))
        if last == sign:
            return
        # Adding or subtracting an integer keeps the type of the range.
        step = "+ 1" if sign.type == ".." else "- 1"
        self.replace(node, self.spliced(node, last, f"({last.text.decode()}) {step}"))

    def in_call_expression(self, node) -> None:
        function = node.child_by_field_name("function")
        if function.type != "field_expression":
            return
        method = function.child_by_field_name("field")
        other = METHODS.get(method.text.decode())
        if other is not None:
            self.replace(node, self.spliced(node, method, other))

    def in_expression_statement(self, node) -> None:
        inner = node.children[0]
        if node.children[-1].type != ";":
            return
        while inner.type == "try_expression":
            inner = inner.children[0]
        if inner.type == "call_expression" and not skips(inner):
            self.add(
                node.start_byte,
                node.end_byte,
                "statement",
                "",
                f"`{short(node.text.decode())}` is left out",
            )

    def in_match_block(self, node) -> None:
        arms = [c for c in node.children if c.type == "match_arm"]
        patterns = [arm.child_by_field_name("pattern") for arm in arms]
        others = bool(patterns) and patterns[-1].text == b"_"
        for pattern in patterns:
            guard = pattern.child_by_field_name("condition")
            if guard is not None and guard.type not in ("let_condition", "let_chain"):
                self.replace(guard, "true")
                self.replace(guard, "false")
            elif guard is None and others and pattern is not patterns[-1]:
                at = pattern.end_byte
                self.add(
                    at, at, "guard", "", f"the arm `{short(pattern.text.decode())}` is left out"
                )

    def spliced(self, node, part, text: str) -> str:
        """The source of a node with one part replaced by `text`."""
        before = self.text(node.start_byte, part.start_byte)
        return before + text + self.text(part.end_byte, node.end_byte)


def find(file: str, source: bytes) -> list[Site]:
    """The sites of a file, outer ones first."""
    return Finder(file, source).find()


def tests_only(source: bytes) -> list[str]:
    """The modules of a file that are compiled for tests only."""
    pattern = TESTS_ONLY.pattern + rb"\s*(?:pub(?:\([a-z]+\))? )?mod (\w+);"
    return [m.decode() for m in re.findall(pattern, source)]
