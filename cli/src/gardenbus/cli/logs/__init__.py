"""Logs of a local landscape: files read in the order of time, and their lines for people."""
