"""The constants of SINGA's protocol buffers."""
