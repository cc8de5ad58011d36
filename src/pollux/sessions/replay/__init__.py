"""Operations of one file replayed into its state, timeline and model calls."""
