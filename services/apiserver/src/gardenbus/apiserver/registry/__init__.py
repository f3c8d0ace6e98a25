"""Registry: reads, checks and writes objects, whoever requests it. No message, no queue and no decision is here."""
