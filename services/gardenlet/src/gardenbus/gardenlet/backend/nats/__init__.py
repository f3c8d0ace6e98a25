"""Backend `nats`: the steps of a shoot are requests on the bus, served by an extension. Gardenbus brings none."""
