"""Gardener's error codes of a failed operation. Source: Gardener's `v1beta1/helper/errors.go`."""

from typing import Literal, get_args

ErrorCode = Literal[
    "ERR_INFRA_UNAUTHENTICATED",
    "ERR_INFRA_UNAUTHORIZED",
    "ERR_INFRA_QUOTA_EXCEEDED",
    "ERR_INFRA_RATE_LIMITS_EXCEEDED",
    "ERR_INFRA_DEPENDENCIES",
    "ERR_RETRYABLE_INFRA_DEPENDENCIES",
    "ERR_INFRA_RESOURCES_DEPLETED",
    "ERR_CLEANUP_CLUSTER_RESOURCES",
    "ERR_CONFIGURATION_PROBLEM",
    "ERR_RETRYABLE_CONFIGURATION_PROBLEM",
    "ERR_PROBLEMATIC_WEBHOOK",
]

ERROR_CODES: frozenset[str] = frozenset(get_args(ErrorCode))

NON_RETRYABLE: frozenset[str] = frozenset(
    {
        "ERR_INFRA_UNAUTHENTICATED",
        "ERR_INFRA_UNAUTHORIZED",
        "ERR_INFRA_DEPENDENCIES",
        "ERR_INFRA_QUOTA_EXCEEDED",
        "ERR_INFRA_RATE_LIMITS_EXCEEDED",
        "ERR_CONFIGURATION_PROBLEM",
        "ERR_PROBLEMATIC_WEBHOOK",
    }
)
"""Codes after which the operation is not retried."""
