"""Backend `nats`: the steps of a shoot are requests on the bus, answered by anybody. Gardenbus brings nobody for it."""
