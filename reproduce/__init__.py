"""The literature, reproduced: claims from papers, each measured anew; ``python -m reproduce`` writes the page."""
