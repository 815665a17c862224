"""Lambda entry points, one folder each: `app.py` has the handler."""
