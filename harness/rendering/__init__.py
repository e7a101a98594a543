"""What is drawn from a report: a page, Markdown, JUnit XML, a badge. Each from the record and from nothing else."""
