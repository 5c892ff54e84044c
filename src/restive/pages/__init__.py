"""What every page, picture and data frame looks like.

Start with `page` (HTML) and `chart` (a figure on a page); `looks` has the colours; `figures` are
the pictures that `.plot()` draws. matplotlib and pandas are loaded when the first one is made.

May import the modules at the root only.
"""
