"""Tools for authors of competitions: templates for a new folder, checks of it, malformed submissions for its grader."""
