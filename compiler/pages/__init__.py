"""Pages to read in a browser: what a gradient saves, and a function through every stage.

Each is one file without network: `page.html` with `page.css` and `page.js` in it. Python writes the listings
as HTML and the edges between their rows as data; the script measures where the rows are and draws.
"""
