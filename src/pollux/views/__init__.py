"""Sessions and reports as blocks, bodies and rows: decided once here for every renderer."""
