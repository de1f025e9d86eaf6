"""An audit in the forms that others read: LaTeX tables, model cards, and a research object to deposit and cite."""

from gfscore.exports.cards import model_cards
from gfscore.exports.crate import write_crate
from gfscore.exports.latex import class_table, model_table

__all__ = ["class_table", "model_cards", "model_table", "write_crate"]
