"""Facts and model as rows and blocks: what there is to show, decided once for every renderer."""
