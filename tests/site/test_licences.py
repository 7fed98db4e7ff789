"""Every file of the built site belongs to somebody, and the site says to whom."""

import zipfile

import pytest

from checks import licences
from machine import SITE


@pytest.fixture(scope="module")
def paths():
    assert (SITE / licences.FILE).exists(), "build the site first: make book"
    return licences.paths_of(SITE)


def test_every_file_of_the_site_has_an_owner(paths):
    assert list(licences.unowned(SITE)) == []
    assert len(paths) > 60


def test_the_site_names_every_owner_and_gives_the_texts(paths):
    said = (SITE / licences.FILE).read_text(encoding="utf-8")
    for owner in {licences.owner_of(path) for path in paths}:
        assert owner.name in said and owner.licence in said
        for text in licences.texts(owner):
            assert text.strip() in said


def test_every_page_links_to_it(paths):
    for path in paths:
        if path.startswith("chapters/") and path.endswith(".html"):
            page = (SITE / path).read_text(encoding="utf-8")
            if "<title>Moved</title>" in page:
                continue  # it leads on
            assert f'href="{"../" * path.count("/")}{licences.FILE}"' in page, path


def test_an_unknown_file_is_a_fault(tmp_path):
    for name in ("_static/stranger.js", "_run/pyodide/stranger.js", "chapters/stranger.ttf"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"")
        assert list(licences.unowned(tmp_path)) == [f"{name}: whose is it? (licences.yml)"]
        file.unlink()


def test_a_wheel_without_its_licence_is_a_fault(tmp_path):
    wheel = tmp_path / "_run/pyodide/numpy-9-py3-none-any.whl"
    wheel.parent.mkdir(parents=True)
    for name, faults in (("numpy/__init__.py", 1), ("numpy-9.dist-info/licenses/LICENSE.txt", 0)):
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr(name, "")
        assert len(list(licences.unowned(tmp_path))) == faults


def test_a_package_without_a_licence_file_stops_the_build():
    stranger = licences.Owner("x", (), "MIT", package="no-such-package")
    with pytest.raises(ValueError, match="no-such-package brings no licence file"):
        licences.texts(stranger)


def test_the_icons_do_not_carry_the_reserved_name():
    from fontTools.ttLib import TTFont

    names = TTFont(SITE / "_static" / "icons.woff")["name"].names
    assert {entry.nameID for entry in names} == {0}
    for sheet in (SITE / "_static" / "styles").glob("*.css"):
        assert "6 Free" not in sheet.read_text(encoding="utf-8")
