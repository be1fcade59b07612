# Reads the tide gauge.

def height(raw: int) -> float:
    """Millimetres above the datum, as metres."""
    return raw / 1000
