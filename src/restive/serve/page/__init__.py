"""The operator's pages: made by the server, readable without scripts.

Start with `routes`. `today`, `arms` and `known` each read what a page shows in one turn of the
agent, and give it to the template of their name; `operator.html` is what the pages have in common,
`charts` are their pictures. What they look like is `restive.pages`', and `operator.css` what these
pages alone need; `operator.js` sends what an operator does.
"""
