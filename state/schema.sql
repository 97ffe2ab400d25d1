-- Version 1 of the state. Times are seconds since the epoch (UTC), what is unknown is NULL.
CREATE TABLE datasets (
    competition_id TEXT NOT NULL,
    edition        TEXT NOT NULL,
    state          TEXT NOT NULL,
    problem        TEXT NOT NULL DEFAULT '',
    source         TEXT NOT NULL DEFAULT '',
    bytes_on_disk  INTEGER,
    requested_at   REAL,
    prepared_at    REAL,
    updated_at     REAL NOT NULL,
    PRIMARY KEY (competition_id, edition)
) STRICT;

CREATE TABLE dataset_steps (
    competition_id TEXT NOT NULL,
    edition        TEXT NOT NULL,
    position       INTEGER NOT NULL,
    name           TEXT NOT NULL,
    state          TEXT NOT NULL,
    done           INTEGER NOT NULL DEFAULT 0,
    total          INTEGER,
    unit           TEXT NOT NULL DEFAULT '',
    note           TEXT NOT NULL DEFAULT '',
    started_at     REAL,
    ended_at       REAL,
    PRIMARY KEY (competition_id, edition, position),
    FOREIGN KEY (competition_id, edition) REFERENCES datasets ON DELETE CASCADE
) STRICT;

CREATE TABLE agents (
    id            TEXT NOT NULL,
    version       TEXT NOT NULL,
    folder        TEXT NOT NULL,
    first_used_at REAL NOT NULL,
    PRIMARY KEY (id, version)
) STRICT;

CREATE TABLE sweeps (
    id            TEXT PRIMARY KEY,
    name          TEXT NOT NULL,
    state         TEXT NOT NULL,
    spec          TEXT NOT NULL,
    agent_version TEXT NOT NULL,
    concurrency   INTEGER NOT NULL,
    priority      INTEGER NOT NULL DEFAULT 0,
    created_at    REAL NOT NULL,
    note          TEXT NOT NULL DEFAULT ''
) STRICT;

CREATE TABLE runs (
    id               INTEGER PRIMARY KEY,
    sweep_id         TEXT NOT NULL REFERENCES sweeps,
    competition_id   TEXT NOT NULL,
    seed             INTEGER NOT NULL,
    state            TEXT NOT NULL,
    outcome          TEXT,
    failure_class    TEXT,
    failure_text     TEXT NOT NULL DEFAULT '',
    standing         TEXT,
    score            REAL,
    valid            INTEGER,
    attempts         INTEGER NOT NULL DEFAULT 0,
    rerolls          INTEGER NOT NULL DEFAULT 0,
    queued_at        REAL NOT NULL,
    started_at       REAL,
    ended_at         REAL,
    last_activity_at REAL,
    submissions      INTEGER NOT NULL DEFAULT 0,
    position         INTEGER NOT NULL,
    UNIQUE (sweep_id, competition_id, seed)
) STRICT;
CREATE INDEX runs_by_state ON runs (state, sweep_id, position);

CREATE TABLE attempts (
    id             INTEGER PRIMARY KEY,
    run_id         INTEGER NOT NULL REFERENCES runs,
    number         INTEGER NOT NULL,
    directory      TEXT NOT NULL UNIQUE,
    runtime        TEXT NOT NULL,
    isolated       INTEGER,
    created_at     REAL NOT NULL,
    started_at     REAL,
    ended_at       REAL,
    exit_code      INTEGER,
    exit_signal    INTEGER,
    exit_reason    TEXT NOT NULL DEFAULT '',
    outcome        TEXT,
    failure_class  TEXT,
    failure_text   TEXT NOT NULL DEFAULT '',
    evidence       TEXT NOT NULL DEFAULT '',
    classified_by  TEXT NOT NULL DEFAULT '',
    reroll         INTEGER NOT NULL DEFAULT 0,
    events_offset  INTEGER NOT NULL DEFAULT 0,
    usage_offset   INTEGER NOT NULL DEFAULT 0,
    UNIQUE (run_id, number)
) STRICT;

CREATE TABLE submissions (
    id              INTEGER PRIMARY KEY,
    attempt_id      INTEGER NOT NULL REFERENCES attempts,
    sequence        INTEGER NOT NULL,
    taken_at        REAL NOT NULL,
    elapsed_seconds REAL NOT NULL,
    sha256          TEXT NOT NULL,
    bytes           INTEGER NOT NULL,
    path            TEXT NOT NULL,
    final           INTEGER NOT NULL DEFAULT 0,
    UNIQUE (attempt_id, sequence)
) STRICT;

CREATE TABLE grades (
    submission_id INTEGER PRIMARY KEY REFERENCES submissions,
    graded_at     REAL NOT NULL,
    edition       TEXT NOT NULL,
    score         REAL,
    valid         INTEGER NOT NULL,
    standing      TEXT NOT NULL,
    message       TEXT NOT NULL,
    report        TEXT NOT NULL
) STRICT;

CREATE TABLE events (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    at             REAL NOT NULL,
    kind           TEXT NOT NULL,
    text           TEXT NOT NULL,
    sweep_id       TEXT,
    run_id         INTEGER,
    attempt_id     INTEGER,
    competition_id TEXT,
    detail         TEXT NOT NULL DEFAULT '{}'
) STRICT;
CREATE INDEX events_of_run ON events (run_id, id);
CREATE INDEX events_of_sweep ON events (sweep_id, id);

CREATE TABLE requests (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    filed_at    REAL NOT NULL,
    author      TEXT NOT NULL,
    kind        TEXT NOT NULL,
    arguments   TEXT NOT NULL,
    state       TEXT NOT NULL DEFAULT 'filed',
    answer      TEXT NOT NULL DEFAULT '',
    answered_at REAL
) STRICT;
CREATE INDEX requests_open ON requests (id) WHERE state = 'filed';

CREATE TABLE experiments (
    id         TEXT PRIMARY KEY,
    note       TEXT NOT NULL DEFAULT '',
    created_at REAL NOT NULL
) STRICT;

CREATE TABLE experiment_sweeps (
    experiment_id TEXT NOT NULL REFERENCES experiments ON DELETE CASCADE,
    sweep_id      TEXT NOT NULL REFERENCES sweeps,
    PRIMARY KEY (experiment_id, sweep_id)
) STRICT;
