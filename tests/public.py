"""What the package offers: `PUBLIC` maps ``x`` to ``dp.x``, ``room.x`` to that of a page's room."""

import dpnotes as dp
from pages import api

PUBLIC = {
    name if room is dp else f"{room.__name__.split('.')[-1]}.{name}": thing
    for room, names in api.rooms()
    for name, thing in names.items()
}
