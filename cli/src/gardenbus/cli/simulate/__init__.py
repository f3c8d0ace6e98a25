"""Seeds and clusters as `simulate` has them before any agent runs, and plots of autoscaling."""
