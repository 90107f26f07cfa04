"""What a learner calls in a notebook."""
