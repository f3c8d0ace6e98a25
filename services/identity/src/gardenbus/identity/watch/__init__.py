"""Cache of issued credentials and revocations."""
