"""A copy of the crate that contains all mutants at once, except those that do not compile."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import schemata
from sites import Mutant, find, tests_only

ROOT = Path(__file__).parents[2]
ROOMS = ("packing", "graph", "rewrite", "engine")
ARGUMENTS = ["--lib", "--no-default-features", "--message-format=json"]
COPIED = ["src", "benches", "examples", "Cargo.*"]
ROUNDS = 40
BUILDING = {
    "CARGO_TARGET_DIR": str(ROOT / "target"),
    "PYO3_BUILD_EXTENSION_MODULE": "1",
    "PYO3_PYTHON": sys.executable,
}


def shipped(paths: list[str]) -> list[str]:
    """The files below these paths that do not belong to tests."""
    files = sorted(p for path in paths for p in [ROOT / path, *(ROOT / path).rglob("*.rs")])
    files = sorted({p for p in files if p.is_file() and p.suffix == ".rs"})
    hidden = {"tests"}
    for room in ROOMS:
        for file in (ROOT / "src" / room).rglob("*.rs"):
            folder = file.parent if file.stem == "mod" else file.with_suffix("")
            hidden |= {
                str(folder.relative_to(ROOT) / name) for name in tests_only(file.read_bytes())
            }
    inside = [str(p.relative_to(ROOT)) for p in files if p.stem != "tests"]
    return [p for p in inside if not any(p == f"{h}.rs" or p.startswith(f"{h}/") for h in hidden)]


class Crate:
    """The copy, in a folder of its own; build products go where cargo puts all others."""

    def __init__(self, files: list[str], folder: Path):
        self.folder, self.sources, self.sites, self.spans = folder, {}, {}, {}
        for file in files:
            self.sources[file] = (ROOT / file).read_bytes()
            self.sites[file] = find(file, self.sources[file])
        sites = [site for file in files for site in self.sites[file]]
        self.mutants: list[Mutant] = [m for site in sites for m in site.mutants]
        # Numbers are valid for this build; keys for every build with the same functions.
        self.numbers = {m.key: n for n, m in enumerate(self.mutants, 1)}
        self.left_out: set[str] = set()

    def build(self) -> None:
        """Finds the mutants that do not compile, and writes the copy without them."""
        self.copy()
        for _ in range(ROUNDS):
            self.write()
            wrong = self.errors(self.cargo("check", "--profile", "test"))
            if not wrong:
                return
            print(f"{len(wrong)} mutants do not compile", flush=True)
            self.left_out |= wrong
        raise SystemExit("the mutants that do not compile were not found")

    def copy(self) -> None:
        """Copies the files that git lists, without the lints, which mutants violate."""
        listed = subprocess.run(
            ["git", "ls-files", "-z", "-c", "-o", "--exclude-standard", "--", *COPIED],
            cwd=ROOT, check=True, capture_output=True, text=True,
        )  # fmt: skip
        others = [f for f in listed.stdout.split("\0") if f and (ROOT / f).exists()]
        for file in sorted({*others, *self.sources}):
            text = (ROOT / file).read_bytes()
            if file == "Cargo.toml":
                text = re.sub(rb"\n\[lints\.\w+\]\n(?:[^\[\n].*\n|\n)*", b"\n", text)
                # A name of its own keeps cargo's products of the copy and of the crate apart; the
                # dependencies of both are built once.
                text = text.replace(b'name = "singa_rs"', b'name = "mutants"', 1)
                text = text.replace(b"[lib]\n", b'[lib]\nname = "singa_rs"\n', 1)
                text += b"\n[workspace]\n"
            if file == "src/lib.rs":
                text = b"#![allow(warnings)]\n" + text + b"\npub mod mutant;\n"
            if file not in self.sources:
                self.put(file, text)
        known = {*others, *self.sources, "src/mutant.rs"}
        for old in self.folder.rglob("*.rs"):
            if str(old.relative_to(self.folder)) not in known:
                old.unlink()
        self.put("src/mutant.rs", schemata.module(len(self.mutants)).encode())

    def write(self) -> None:
        numbers = {k: n for k, n in self.numbers.items() if k not in self.left_out}
        for file, source in self.sources.items():
            text, self.spans[file] = schemata.write(source, self.sites[file], numbers)
            self.put(file, text)

    def put(self, file: str, text: bytes) -> None:
        """Writes a file if it changed, so that cargo rebuilds no more than it must."""
        path = self.folder / file
        if not path.exists() or path.read_bytes() != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text)

    def cargo(self, *command: str) -> list[dict]:
        """The records that cargo prints, one per line."""
        environment = {**os.environ, **BUILDING}
        done = subprocess.run(
            ["cargo", *command, *ARGUMENTS],
            cwd=self.folder, env=environment, capture_output=True, text=True,
        )  # fmt: skip
        records = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        if done.returncode and not any(r["reason"] == "compiler-message" for r in records):
            raise SystemExit(done.stderr)
        return records

    def errors(self, records: list[dict]) -> set[str]:
        """The mutants that the compiler's errors blame."""
        wrong, keys = set(), [m.key for m in self.mutants]
        for record in records:
            message = record.get("message", {})
            if record["reason"] != "compiler-message" or message["level"] != "error":
                continue
            numbers = self.blamed(message)
            if not numbers and message["spans"]:
                raise SystemExit(f"no mutant is to blame:\n{message['rendered']}")
            wrong |= {keys[n - 1] for n in numbers}
        return wrong

    def blamed(self, message: dict) -> list[int]:
        """The mutants in the smallest span around an error, preferably its primary location."""
        for place in sorted(message["spans"], key=lambda s: not s["is_primary"]):
            spans = self.spans.get(place["file_name"], [])
            around = [
                s for s in spans if s.start <= place["byte_start"] and place["byte_end"] <= s.end
            ]
            if around:
                return min(around, key=lambda s: s.end - s.start).mutants
        return []

    def program(self) -> Path:
        """Builds the tests; the path of the program that runs them."""
        made = self.artifacts(self.cargo("test", "--no-run"))
        return self.kept([r["executable"] for r in made if r["executable"]], "tests")

    def library(self) -> Path:
        """Builds the package's library; its path."""
        command = ("rustc", "--crate-type", "cdylib", "--features", "python")
        names = [name for r in self.artifacts(self.cargo(*command)) for name in r["filenames"]]
        return self.kept([name for name in names if name.endswith(".so")], "library.so")

    def artifacts(self, records: list[dict]) -> list[dict]:
        return [r for r in records if r["reason"] == "compiler-artifact"]

    def kept(self, built: list[str], name: str) -> Path:
        """The path of a copy, as other builds may replace the original during this run."""
        if not built:
            raise SystemExit(f"{name} were not built")
        return Path(shutil.copy(built[-1], self.folder.parent / name))
