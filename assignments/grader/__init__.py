"""Build assignments from masters, and mark submissions without trusting them."""
