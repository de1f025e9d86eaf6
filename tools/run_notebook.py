"""Run docs/notebook.md: write its pictures, and put what each block prints into the block of text below it.

    python tools/run_notebook.py

The Python blocks share their names, as cells of a notebook do. A picture below a block is the figure that it has drawn.
"""

import io
import re
import sys
from contextlib import redirect_stdout
from pathlib import Path

import matplotlib
from matplotlib import pyplot
from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs/notebook.md"

DPI = 200
"""Resolution of the pictures, sharp where a narrow screen shows them enlarged."""

PART = re.compile(
    r"^```(?P<language>python|text)\n(?P<text>.*?)^```$|^!\[[^\]]*\]\((?P<picture>[^)]+)\)$",
    flags=re.MULTILINE | re.DOTALL,
)


def run(document: Path, folder: Path, *, torch: bool = True) -> str:
    """Run the blocks of a document, and return its text with what they print.

    Parameters
    ----------
    document : Path
    folder : Path
        Pictures are written here, at the paths of their links.
    torch : bool
        Without it, blocks that name torch, their text and their pictures stay as they are.

    Raises
    ------
    ValueError
        For a document with no block to run.
    """
    names: dict[str, object] = {}
    printed = ""
    ran = 0
    left_out = False
    parts = []
    end = 0
    text = document.read_text(encoding="utf-8")
    for part in PART.finditer(text):
        parts.append(text[end : part.start()])
        end = part.end()
        replacement = part.group()
        if part["language"] == "python":
            left_out = not torch and "torch" in part["text"]
        if left_out:
            pass
        elif part["language"] == "python":
            pyplot.close("all")
            output = io.StringIO()
            with redirect_stdout(output):
                exec(compile(part["text"], str(document), "exec"), names)
            printed = output.getvalue()
            ran += 1
        elif part["language"] == "text":
            replacement = f"```text\n{printed}```"
        else:
            path = folder / part["picture"]
            path.parent.mkdir(parents=True, exist_ok=True)
            drawn = io.BytesIO()
            pyplot.gcf().savefig(drawn, dpi=DPI, metadata={"Software": None})
            # A palette halves the file.
            Image.open(drawn).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)
        parts.append(replacement)
    if not ran:
        raise ValueError(f"{document}: no block of Python to run")
    return "".join(parts) + text[end:]


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "workflow_scripts"))
    matplotlib.use("Agg")
    DOCUMENT.write_text(run(DOCUMENT, DOCUMENT.parent), encoding="utf-8")
