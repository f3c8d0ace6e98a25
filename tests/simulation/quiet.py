"""Silences what a simulation would say a million times."""

import gc
import logging

import structlog


def be_quiet() -> None:
    """Log nothing, and collect garbage seldom."""
    gc.disable()
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL), cache_logger_on_first_use=True
    )
