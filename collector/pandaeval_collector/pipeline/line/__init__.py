"""Turns due traces into decisions: understands each alone, then files them under sessions."""
