"""What operators share whose units come and go while a job runs: members, confirmations, and the plan in the state."""
