"""Traces for the Hugging Face Hub: sessions in the shape of Pi, and the card of the data set."""
