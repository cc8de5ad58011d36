"""Traces for OpenTelemetry (OTLP as JSON), in the words of its conventions for generative AI."""
