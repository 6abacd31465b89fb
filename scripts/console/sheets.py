"""One image per page: its screenshots in both themes and widths beside each other, with those of a design if there is one."""

import html

SCHEMES, WIDTHS = ("light", "dark"), (1280, 360)


def write_sheets(browser, directory, names, design=None):
    """Reads NAME-SCHEME-WIDTH.png and writes sheet-NAME.png. A design is a directory with NAME.html."""
    for name in names:
        drawn = design is not None and (design / f"{name}.html").exists()
        if drawn:
            for scheme in SCHEMES:
                for width in WIDTHS:
                    browser.scheme(scheme)
                    browser.size(width)
                    browser.open((design / f"{name}.html").absolute().as_uri())
                    browser.screenshot(directory / f"design-{name}-{scheme}-{width}.png")
        browser.scheme("light")
        images = []
        for scheme in SCHEMES:
            for width in WIDTHS:
                files = ([f"design-{name}-{scheme}-{width}.png"] if drawn else []) + [f"{name}-{scheme}-{width}.png"]
                images += [f"<figure><figcaption>{html.escape(file)}</figcaption><img src='{html.escape(file)}' width='{width // 2}'></figure>" for file in files]
        style = "body{display:flex;gap:8px;align-items:start;margin:8px;width:max-content;background:#888;font:12px sans-serif}figure{margin:0}"
        sheet = directory / f"sheet-{name}.html"
        sheet.write_text(f"<!doctype html><title>{html.escape(name)}</title><style>{style}</style>{''.join(images)}")
        browser.size(4000)
        browser.open(sheet.absolute().as_uri())
        browser.screenshot(directory / f"sheet-{name}.png")
        sheet.unlink()
    browser.requested_hosts()
    browser.errors()
