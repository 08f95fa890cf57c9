"""What a trained family of networks reaches: measured, chosen from, drawn, written to files."""
