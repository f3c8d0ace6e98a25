"""Reconcilers of the member agent: MemberCluster and Works."""
