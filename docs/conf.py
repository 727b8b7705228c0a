"""How Sphinx makes the site from these pages; `make docs` runs it, and any warning fails it."""

project = "5-Spot for Python"
copyright = "the contributors to 5-Spot for Python"  # noqa: A001 - Sphinx wants this name

extensions = ["myst_parser"]
exclude_patterns = ["_build"]
root_doc = "index"
nitpicky = True

# Links to headings, as GitHub makes them, so that the pages work in both places.
myst_heading_anchors = 4
myst_links_external_new_tab = False
# Links such as ../examples/ lead out of the site, to the checkout; tests/docs checks that they exist.
myst_url_schemes = ("https",)

html_theme = "furo"
html_title = "5-Spot for Python"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
