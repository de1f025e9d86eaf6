"""An audit in the forms that others read: LaTeX tables, model cards, and a research object to deposit and cite."""
