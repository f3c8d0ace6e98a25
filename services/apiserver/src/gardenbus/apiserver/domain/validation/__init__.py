"""Rules of metadata and of each kind's own fields, a module a kind: `check(manifest, old)` notes every problem.

`manifest.validate` finds the rules of a kind. Only fields that a service reads are checked; all others pass. What needs
other objects belongs to the apiserver's plug-ins. Source: Gardener keeps them apart too, in `pkg/api/core/validation`.
"""
