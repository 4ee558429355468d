"""What exists for SINGA's programs alone."""
