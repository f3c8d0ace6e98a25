"""Rules of ManagedResources: what is decided of them without a request. Requests belong into `resource_manager`."""
