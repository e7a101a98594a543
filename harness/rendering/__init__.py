"""What is drawn from a report, and from nothing else: a page, Markdown, JUnit XML, a badge."""
