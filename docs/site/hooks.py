"""What the site has beside the pages of docs/: the reference, and files that pages link to.

Links stay as the code host needs them; here those that lead out of docs/ are turned to copies.
"""

import json
import posixpath
import re
from pathlib import Path

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

DOCS = Path(__file__).resolve().parents[1]
ROOT = DOCS.parent
REFERENCE = json.loads((ROOT / "target/reference.json").read_text())
#: Pages that stand outside of docs/.
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
LINK = re.compile(r"\]\(([^)#:]+)(#[^)]*)?\)")
HEADING = re.compile(r"^## (.*)$", re.M)
ANCHOR = re.compile(r'id="(singa_rs[\w.]*)"')
#: What a page loads from the network.
LOADED = re.compile(r'<(?:script|link|img|iframe)[^>]*(?:src|href)="https?:')
#: What the functions of `autograd` that are no operators stand under.
OTHERS = "Gradients and helpers"


# ---- files outside of docs/ ----------------------------------------------------------------------


def place(target, folder):
    """Where the site has a file that a page in a folder of the repository links to."""
    path = posixpath.normpath(posixpath.join(folder, target))
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return PAGES.get(path, f"repository/{path}")


def turned(text, folder):
    """A page whose links lead to places of the site."""
    return LINK.sub(lambda m: f"]({place(m[1], folder)}{m[2] or ''})", text)


def outside():
    """The pages that stand outside of docs/, by their places in the site."""
    return {at: (ROOT / name).read_text() for name, at in PAGES.items()}


def linked():
    """The files of the repository that pages link to, by their places, and that are no pages."""
    sources = [(text, "") for text in outside().values()]
    sources += [(path.read_text(), "docs") for path in DOCS.glob("*.md")]
    found = {place(one, folder) for text, folder in sources for one, _ in LINK.findall(text)}
    named = {at: ROOT / at.removeprefix("repository/") for at in found if "repository/" in at}
    return {at: path for at, path in named.items() if path.is_file()}  # others are broken links


# ---- the reference -------------------------------------------------------------------------------


def families():
    """The functions of `autograd` under the headings that docs/operators.md has."""
    _, *rest = HEADING.split((DOCS / "operators.md").read_text())
    found = {
        heading: re.findall(r"^\| `(\w+)` \|", body, re.M)
        for heading, body in zip(rest[::2], rest[1::2], strict=True)
    }
    del found["Operations of the engine"]
    return {heading: names for heading, names in found.items() if names}


def sections(names):
    """The names of `autograd` by sections: operators, what else is a function, classes."""
    made, functions = families(), [one for one in names if not names[one]["methods"]]
    known = {one for some in made.values() for one in some}
    made = {heading: [one for one in some if one in names] for heading, some in made.items()}
    made[OTHERS] = [one for one in functions if one not in known]
    made["Classes of operators"] = [one for one in names if one not in functions]
    return made


def listed(path, names):
    """The lines by which mkdocstrings writes what names of a module are."""
    members = json.dumps(sorted(names))
    return f"::: {path}\n    options:\n      members: {members}\n"


def elsewhere(name, entry):
    """The module that a name of the package comes from, None if that has no page."""
    for module, page in REFERENCE.items():
        if module and page["names"].get(name, {}).get("doc") == entry["doc"]:
            return f"singa_rs.{module}"
    return None


def package(names):
    """The names of the package: most lead to those of its modules."""
    homes = {name: elsewhere(name, entry) for name, entry in names.items()}
    links = [
        f'- <a id="singa_rs.{name}"></a>[`{name}`][{home}.{name}]'
        for name, home in homes.items()
        if home
    ]
    return "\n".join(links) + "\n\n" + listed("singa_rs", [n for n in names if not homes[n]])


def head(name):
    """What the page of a module begins with."""
    page = REFERENCE[name]
    text = f"# {path_of(name)}\n\n{page['doc']}\n\n"
    if not page["first"]:
        return text
    begin = "The examples begin with these lines, and NumPy prints three digits."
    return f"{text}{begin}\n\n```pycon\n{page['first']}\n```\n\n"


def path_of(name):
    """The module's name with the package's."""
    return f"singa_rs.{name}".rstrip(".")


def family_pages(names):
    """The pages of `autograd`'s names: titles, places in the site, texts."""
    for heading, members in sections(names).items():
        title = heading if len(heading) < 50 else heading.partition(",")[0]
        slug = re.sub(r"\W+", "-", title.lower())
        text = f"# autograd: {title}\n\n{listed('singa_rs.autograd', members)}"
        yield title, f"reference/autograd/{slug}.md", text


def reference():
    """The pages of the reference: titles, places in the site, texts, and pages below each."""
    for name, page in REFERENCE.items():
        below, names = [], page["names"]
        if name == "autograd":
            below = list(family_pages(names))
            text = "".join(
                f"- [{title}]({at.removeprefix('reference/')})\n" for title, at, _ in below
            )
        else:
            text = listed(path_of(name), names) if name else package(names)
        yield path_of(name), f"reference/{name or 'package'}.md", head(name) + text, below


def entries():
    """The reference in the navigation."""
    for title, at, _, below in reference():
        inner = [{"Overview": at}, *({one: place_} for one, place_, _ in below)]
        yield {title: inner if below else at}


# ---- mkdocs' events ------------------------------------------------------------------------------


def on_config(config):
    """Lists the pages of the reference in the navigation."""
    pages = list(entries())
    config.nav = [
        {key: pages if value == "REFERENCE" else value for key, value in one.items()}
        for one in config.nav
    ]
    return config


def made():
    """The texts of the pages that no file of docs/ has, by their places."""
    yield from ((at, turned(text, "")) for at, text in outside().items())
    for _, at, text, below in reference():
        yield at, text
        yield from ((at, text) for _, at, text in below)


def on_files(files, config):
    """Adds the pages outside of docs/, the reference, and files that pages link to or load."""
    loaded = {f"assets/{name}": DOCS / "site" / name for name in ("iframe-worker.js", "site.css")}
    for at, text in made():
        files.append(File.generated(config, at, content=text))
    for at, path in sorted((linked() | loaded).items()):
        files.append(File.generated(config, at, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown, page, config, files):
    """Turns the links of the pages of docs/."""
    is_own = not page.file.generated_by
    return turned(markdown, "docs") if is_own else markdown


def on_post_build(config):
    """Every public name has to be in the reference, and no page may load from the network."""
    pages = {path: path.read_text() for path in Path(config.site_dir).glob("**/*.html")}
    for path, text in pages.items():
        if found := LOADED.search(text):
            raise PluginError(f"{path}: {found[0]}")
    anchors = {one for text in pages.values() for one in ANCHOR.findall(text)}
    if missing := sorted(wanted() - anchors):
        raise PluginError(f"not in the reference: {', '.join(missing)}")


def wanted():
    """The anchors of all public names."""
    return {
        f"{path_of(module)}.{name}" for module, page in REFERENCE.items() for name in page["names"]
    }
