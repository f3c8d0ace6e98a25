"""Pure parts of agents: status of member clusters, and their enrolment. No I/O, clock or randomness."""
