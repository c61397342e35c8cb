"""Generated from proto/ by proto/generate.sh; do not edit."""
