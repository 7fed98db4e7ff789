"""The picture in README.md: the first page of the built site, small. `make picture`"""

from PIL import Image
from playwright.sync_api import sync_playwright

from carry.pdf import found_chromium
from surroundings import ROOT

TARGET = ROOT / ".github" / "picture.png"


def main():
    page = ROOT / "_build" / "html" / "chapters" / "intro.html"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=found_chromium(), args=["--headless", "--no-sandbox"]
        )
        tab = browser.new_page(viewport={"width": 1080, "height": 640})
        tab.goto(page.as_uri(), wait_until="networkidle")
        tab.screenshot(path=TARGET)
        browser.close()
    small = Image.open(TARGET).convert("RGB").resize((640, 379), Image.LANCZOS)
    small.quantize(16).save(TARGET, optimize=True)


if __name__ == "__main__":
    main()
