"""One HTML page about an arena: what its sizes are, and what they depend on.

`curve` and `effects` work out numbers, `charts` places them, `view` puts them in
words, `render` spells the page. Data in, text out; `disk` writes it.
"""
