"""The archive: the client's files byte for byte, for ever, and the facts derived from them."""
