"""What people look at: charts, the page, exports, and the words in them."""
