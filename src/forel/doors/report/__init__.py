"""A report of training as one HTML page: plots, figures and the certificate; it loads nothing and runs nothing.

Plots are small SVGs written here rather than matplotlib's, so that they come with a plain installation, take their
colours from the page, light or dark, and keep their text readable on a phone.
"""

from forel.doors.report.page import page, write_report

__all__ = ["page", "write_report"]
