"""What every page and picture looks like: colours, CSS, script, charts as SVG, pieces of HTML."""
