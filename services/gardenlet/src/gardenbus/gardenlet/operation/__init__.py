"""Operations on shoots: runs a flow against the backend, and tears down what is left of a shoot."""
