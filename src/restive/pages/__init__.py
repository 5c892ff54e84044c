"""What every page, picture and data frame looks like.

Start with `page` (templates, in `templates/` and beside the module of each page) and `chart` (a
figure on a page, with `axes` that charts share; `forest` draws intervals in rows); `looks` has the
colours; `figures` are the pictures that `.plot()` draws, `drawing` makes SVG of figures, `frames`
are data frames and tables of notebooks. Jinja2, matplotlib and pandas are loaded when the first
one is made.

May import the modules at the root only.
"""
