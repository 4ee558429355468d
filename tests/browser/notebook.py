"""A page of cells and what they show, as a notebook lays them out."""

import ast
from html import escape

STYLE = """
body { margin: 0; padding: 26px 40px 30px; background: #fff; color: #1f2328;
  font: 15px/1.5 system-ui, "Segoe UI", Roboto, "Noto Sans", sans-serif }
h1 { margin: 0 0 14px 96px; font-size: 24px }
.cell { display: grid; grid-template-columns: 84px minmax(0, 1fr); gap: 0 12px }
.cell { margin-bottom: 14px }
.label { padding-top: 9px; text-align: right; color: #7a808a;
  font: 13px ui-monospace, "DejaVu Sans Mono", monospace }
pre { margin: 0; overflow: hidden; font: 13px/1.45 ui-monospace, "DejaVu Sans Mono", monospace }
.code { padding: 9px 12px; background: #f6f7f8; border: 1px solid #e2e5e9; border-radius: 4px }
.shown { padding: 9px 12px }
"""


def page(title, cells):
    """Runs cells one after another; below each stands what its last expression shows as HTML."""
    names, parts = {}, []
    for number, code in enumerate(cells, 1):
        shown = run(code, names)
        parts.append(row(f"[{number}]:", f'<pre class="code">{escape(code)}</pre>'))
        if shown is not None:
            parts.append(row(f"[{number}]:", f'<div class="shown">{shown._repr_html_()}</div>'))
    head = f'<!doctype html><meta charset="utf-8"><title>{escape(title)}</title>'
    return f"{head}<style>{STYLE}</style><h1>{escape(title)}</h1>{''.join(parts)}"


def row(label, content):
    """A cell or an output, with its number."""
    return f'<div class="cell"><div class="label">{label}</div>{content}</div>'


def run(code, names):
    """The value of the last expression of a cell."""
    *body, last = ast.parse(code).body
    if isinstance(last, ast.Expr):
        exec(compile(ast.Module(body, []), "cell", "exec"), names)
        return eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    exec(compile(code, "cell", "exec"), names)
    return None
