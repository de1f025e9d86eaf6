"""What people look at: figures, report, dashboard, exports, and the words in them."""
