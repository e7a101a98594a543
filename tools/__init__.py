"""Programs for developers of this repository: mutation runs, studies of the method, pages drawn from records."""
