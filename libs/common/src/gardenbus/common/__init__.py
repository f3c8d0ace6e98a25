"""The library under all services: resources, ports, adapters, machinery and runtime."""
