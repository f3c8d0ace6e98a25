"""Which clusters a placement goes to, how it is rolled out, and who may be evicted. Pure: values in, values out.

Source of the rules: KubeFleet.
"""
