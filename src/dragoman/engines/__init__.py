"""What translates: our own model and search in torch, or CTranslate2. Part of the composer `translator`."""
