"""SQL on the fact tables to frozen values, one module per report."""
