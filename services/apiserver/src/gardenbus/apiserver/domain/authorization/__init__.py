"""Authorization of requests: actions, roles and their rules, gardenlets' graphs, and the decision.

Admission comes after it. What a request must say to be understood is not here (`request_subjects`), nor what a report
may state (`report_admission`).
"""
