"""Commands about results: scoreboard, grading, integrity, exports and their verification."""
