"""docs/notebook.md: its code runs, prints what stands below it, and draws its pictures."""

import matplotlib
import torch
from matplotlib import pyplot

from run_notebook import DOCUMENT, PART, run


def test_the_document_shows_what_its_code_prints_and_draws(tmp_path):
    threads = torch.get_num_threads()
    matplotlib.use("Agg")
    torch.set_num_threads(1)
    try:
        text = run(DOCUMENT, tmp_path)
    finally:
        torch.set_num_threads(threads)
        pyplot.close("all")
    assert text == DOCUMENT.read_text(encoding="utf-8")
    pictures = [part["picture"] for part in PART.finditer(text) if part["picture"]]
    assert len(pictures) == 3
    for picture in pictures:
        drawn = pyplot.imread(tmp_path / picture)
        shown = DOCUMENT.parent / picture
        # Fonts of another system may make it a little higher.
        assert pyplot.imread(shown).shape[1] == drawn.shape[1]
        assert shown.stat().st_size < 100_000
