"""Shapes of names: of objects, and of the labels that they are made of (RFC 1123)."""

import re

LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
"""A label: at most 63 characters; a namespace's name is one."""

NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
"""An object's name: at most 253 characters."""

PATH_SEGMENT = re.compile(r"(?![.])(?!.*[.][.])[!-$&-)+-.0-=?-~]{1,253}(?<![.])")
"""A name that Kubernetes only wants to be a part of a path, as `system:node`: no `/` or `%`.

A subject must have it, too: no white space, `*` or `>`, and no dot at an end or beside another.
"""
