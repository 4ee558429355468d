"""The constants that programs of SINGA 1.x import from its protocol buffers."""
