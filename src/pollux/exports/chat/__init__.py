"""Conversations to train on: messages and tools, in the shape of chat APIs, or as ShareGPT had it."""
