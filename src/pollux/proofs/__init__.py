"""What can be proven to somebody else: signed records, a sealed archive, redacted copies that still fit their seal."""
