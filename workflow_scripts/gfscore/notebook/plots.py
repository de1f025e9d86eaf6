"""Charts of the page and the figures for an audit in memory, on matplotlib's axes, drawn by the same functions."""

from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gfscore.audit.in_memory import AuditInMemory
from gfscore.core.errors import InputError
from gfscore.show.audit_charts import Drawing, drawing_of
from gfscore.show.charts import CHARTS
from gfscore.show.charts.declaration import Subject
from gfscore.show.drawing.layout import INCH, WIDTH
from gfscore.show.drawing.theme import look


class Plots:
    """Charts of an audit.

    Each draws on `ax`, within the place that it has in its figure, or without it on a new figure of pyplot, with the
    finding as its title and a note on how to read it. It returns the axes: `audit.plot.heatmap().figure.savefig(...)`.
    Charts that compare models raise InputError where there is one model.
    """

    def __init__(self, audited: AuditInMemory) -> None:
        """Charts of the values in memory."""
        self._audited = audited

    def heatmap(self, ax: Axes | None = None) -> Axes:
        """Class values as colours: models in rows, the best on top, classes in columns."""
        return self._draw("class_heatmap", ax)

    def ranking(self, ax: Axes | None = None) -> Axes:
        """Means of the models with their intervals, and the ranks that the comparison allows."""
        return self._draw("model_ranking", ax)

    def profiles(self) -> Axes:
        """Class values of each model around a circle, on a new figure."""
        return self._draw("class_profiles", None)

    def vulnerability(self, ax: Axes | None = None) -> Axes:
        """Mean rank of each class over the models."""
        return self._draw("class_vulnerability", ax)

    def differences(self, ax: Axes | None = None) -> Axes:
        """Mean differences of pairs of models with their bounds."""
        return self._draw("model_differences", ax)

    def mean_against_rdi(self, ax: Axes | None = None) -> Axes:
        """Mean of each model against the difference of its best and worst class."""
        return self._draw("score_against_rdi", ax)

    def fp(self, ax: Axes | None = None) -> Axes:
        """Place of each model by the fairness-penalised mean over its weight lambda."""
        return self._draw("fp_reranking", ax)

    def sample_size(self, ax: Axes | None = None) -> Axes:
        """How far the difference of best and worst class is off when each class has n samples."""
        return self._draw("rdi_concentration", ax)

    def confusion(self, ax: Axes | None = None) -> Axes:
        """Share of each class that is taken for each other, mean over models; of audits of logits."""
        return self._draw("confusion", ax)

    def disparity(self) -> list[Axes]:
        """Measures of disparity of each model beside what chance alone gives, a panel each on a new figure."""
        drawing = self._drawing("disparity_bars", against_chance=True)
        return list(self._figure_of(drawing).axes)

    def _drawing(self, name: str, *, against_chance: bool = False) -> Drawing:
        chart = CHARTS[name]
        measure = self._audited.measure
        subject = Subject(
            tables=self._audited.tables(chart.tables, against_chance=against_chance),
            measures={measure.name: measure},
            fp_lambda=self._audited.fp_lambda,
            measure=measure.name,
            measured={measure.name: self._audited.sample_values},
        )
        drawing = drawing_of(chart, subject)
        if drawing is None:
            raise InputError(
                f"chart {chart.title!r}: this audit has nothing for it; it needs "
                f"{'logits' if name == 'confusion' else 'two models or more'}"
            )
        return drawing

    def _draw(self, name: str, ax: Axes | None) -> Axes:
        drawing = self._drawing(name)
        if ax is None:
            return self._figure_of(drawing).axes[0]
        drawing.draw_within(ax)
        return ax

    def _figure_of(self, drawing: Drawing) -> Figure:
        # A figure of pyplot, which a notebook shows.
        with look():
            figure = pyplot.figure(figsize=(WIDTH / INCH, WIDTH / INCH / 2), dpi=INCH)
        drawing.draw_on(figure)
        return figure
