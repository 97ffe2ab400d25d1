"""For those who write competitions: a new folder, its checks, and the submissions that are thrown at its grader."""
