"""The only importers of redis and nats: ports carried out on real servers, and in memory for tests."""
