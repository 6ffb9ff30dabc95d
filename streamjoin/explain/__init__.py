"""What people look at before and beside a job: plans and predicted costs, samples, previews, operators side by side."""
