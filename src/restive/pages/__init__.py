"""What every page, picture and data frame looks like.

Start with `page` (templates, in `templates/` and beside the module of each page) and `chart` (a
figure on a page); `looks` has the colours; `figures` are the pictures that `.plot()` draws. Jinja2,
matplotlib and pandas are loaded when the first one is made.

May import the modules at the root only.
"""
