-- The tables of the state. Times are seconds since the epoch (UTC); what is unknown is NULL.
-- Ids of removed rows are never reused (AUTOINCREMENT), as directories, containers and events are named by them.
CREATE TABLE datasets (
    competition_id TEXT NOT NULL,
    edition        TEXT NOT NULL,
    state          TEXT NOT NULL,
    problem_record TEXT,
    options        TEXT NOT NULL DEFAULT '{}',
    bytes_on_disk  INTEGER,
    requested_at   REAL,
    prepared_at    REAL,
    updated_at     REAL NOT NULL,
    priority       INTEGER NOT NULL DEFAULT 0,
    verification   TEXT NOT NULL DEFAULT '',
    failures       INTEGER NOT NULL DEFAULT 0,
    failing_since  REAL,
    retry_at       REAL,
    demo           INTEGER NOT NULL DEFAULT 0,
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

-- Whether Kaggle can be reached: one row.
CREATE TABLE kaggle (
    id                INTEGER PRIMARY KEY CHECK (id = 1),
    unreachable_since REAL,
    failures          INTEGER NOT NULL DEFAULT 0,
    retry_at          REAL,
    problem           TEXT NOT NULL DEFAULT '',
    accepted_at       REAL
) STRICT;
INSERT INTO kaggle (id) VALUES (1);

CREATE TABLE sweeps (
    id            TEXT PRIMARY KEY,
    name          TEXT NOT NULL,
    state         TEXT NOT NULL,
    spec          TEXT NOT NULL,
    agent_version TEXT NOT NULL,
    concurrency   INTEGER NOT NULL,
    priority      INTEGER NOT NULL DEFAULT 0,
    created_at    REAL NOT NULL,
    note          TEXT NOT NULL DEFAULT '',
    noted_by      TEXT NOT NULL DEFAULT '',
    noted_at      REAL,
    tags          TEXT NOT NULL DEFAULT '[]'
) STRICT;

CREATE TABLE runs (
    id                  INTEGER PRIMARY KEY AUTOINCREMENT,
    sweep_id            TEXT NOT NULL REFERENCES sweeps,
    competition_id      TEXT NOT NULL,
    seed                INTEGER NOT NULL,
    state               TEXT NOT NULL,
    outcome             TEXT,
    failure_class       TEXT,
    failure_text        TEXT NOT NULL DEFAULT '',
    problem             TEXT,
    suspected           TEXT,
    cause               TEXT NOT NULL DEFAULT '',
    excused             INTEGER NOT NULL DEFAULT 0,
    standing            TEXT,
    score               REAL,
    valid               INTEGER,
    attempts            INTEGER NOT NULL DEFAULT 0,
    rerolls             INTEGER NOT NULL DEFAULT 0,
    queued_at           REAL NOT NULL,
    started_at          REAL,
    ended_at            REAL,
    last_activity_at    REAL,
    submissions         INTEGER NOT NULL DEFAULT 0,
    grading_problem     TEXT NOT NULL DEFAULT '',
    grading_fails_since REAL,
    grading_retry_at    REAL,
    note                TEXT NOT NULL DEFAULT '',
    noted_by            TEXT NOT NULL DEFAULT '',
    noted_at            REAL,
    tags                TEXT NOT NULL DEFAULT '[]',
    demo                INTEGER NOT NULL DEFAULT 0,
    position            INTEGER NOT NULL,
    UNIQUE (sweep_id, competition_id, seed)
) STRICT;
CREATE INDEX runs_by_state ON runs (state, sweep_id, position);

CREATE TABLE attempts (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id         INTEGER NOT NULL REFERENCES runs,
    number         INTEGER NOT NULL,
    token          TEXT NOT NULL UNIQUE,
    directory      TEXT NOT NULL UNIQUE,
    placement      TEXT NOT NULL DEFAULT 'here',
    job            TEXT NOT NULL DEFAULT '',
    node           TEXT NOT NULL DEFAULT '',
    waits_for      TEXT NOT NULL DEFAULT '',
    starts_at      REAL,
    job_priority   INTEGER,
    staged_bytes   INTEGER,
    to_stage_bytes INTEGER,
    runtime        TEXT NOT NULL,
    isolated       INTEGER,
    image          TEXT NOT NULL DEFAULT '',
    recipe         TEXT NOT NULL DEFAULT '',
    hardware       TEXT,
    unenforced     TEXT NOT NULL DEFAULT '[]',
    created_at     REAL NOT NULL,
    started_at     REAL,
    ended_at       REAL,
    exit_code      INTEGER,
    exit_signal    INTEGER,
    exit_reason    TEXT,
    outcome        TEXT,
    failure_class  TEXT,
    failure_text   TEXT NOT NULL DEFAULT '',
    problem        TEXT,
    problem_subject TEXT,
    suspected      TEXT,
    cause          TEXT NOT NULL DEFAULT '',
    evidence       TEXT NOT NULL DEFAULT '',
    classified_by  TEXT NOT NULL DEFAULT '',
    reroll         INTEGER NOT NULL DEFAULT 0,
    events_offset  INTEGER NOT NULL DEFAULT 0,
    usage_offset   INTEGER NOT NULL DEFAULT 0,
    calls_offset   INTEGER NOT NULL DEFAULT 0,
    UNIQUE (run_id, number)
) STRICT;

CREATE TABLE submissions (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
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
    message       TEXT NOT NULL
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
    times          INTEGER NOT NULL DEFAULT 1,
    detail         TEXT
) STRICT;
CREATE INDEX events_of_run ON events (run_id, id);
CREATE INDEX events_of_sweep ON events (sweep_id, id);

CREATE TABLE requests (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    filed_at    REAL NOT NULL,
    author      TEXT NOT NULL,
    kind        TEXT NOT NULL,
    arguments   TEXT NOT NULL,
    text        TEXT NOT NULL,
    state       TEXT NOT NULL DEFAULT 'filed',
    answer      TEXT NOT NULL DEFAULT '{}',
    answered_at REAL,
    not_before  REAL
) STRICT;
CREATE INDEX requests_open ON requests (id) WHERE state = 'filed';

CREATE TABLE acknowledgements (
    key    TEXT PRIMARY KEY,
    text   TEXT NOT NULL,
    author TEXT NOT NULL,
    at     REAL NOT NULL,
    reason TEXT NOT NULL,
    until  REAL
) WITHOUT ROWID, STRICT;

CREATE TABLE experiments (
    id         TEXT PRIMARY KEY,
    created_at REAL NOT NULL
) STRICT;

CREATE TABLE experiment_sweeps (
    experiment_id TEXT NOT NULL REFERENCES experiments ON DELETE CASCADE,
    sweep_id      TEXT NOT NULL REFERENCES sweeps,
    PRIMARY KEY (experiment_id, sweep_id)
) STRICT;

CREATE TABLE integrity_results (
    attempt_id INTEGER NOT NULL REFERENCES attempts,
    detector   TEXT NOT NULL,
    layer      TEXT NOT NULL,
    version    INTEGER NOT NULL,
    content    TEXT NOT NULL,
    looked_at  REAL NOT NULL,
    findings   TEXT NOT NULL,
    coverage   TEXT NOT NULL,
    problem    TEXT NOT NULL,
    model      TEXT NOT NULL,
    usd        REAL,
    PRIMARY KEY (attempt_id, detector)
) WITHOUT ROWID, STRICT;

CREATE TABLE reviews (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id    INTEGER NOT NULL REFERENCES runs,
    finding   TEXT NOT NULL,
    statement TEXT NOT NULL,
    cleared   INTEGER NOT NULL,
    reason    TEXT NOT NULL,
    author    TEXT NOT NULL,
    at        REAL NOT NULL
) STRICT;
CREATE INDEX reviews_of_run ON reviews (run_id, id);

CREATE TABLE model_use (
    attempt_id              INTEGER NOT NULL REFERENCES attempts,
    provider                TEXT NOT NULL,
    model                   TEXT NOT NULL,
    prompt_above            INTEGER NOT NULL DEFAULT 0,
    service                 TEXT NOT NULL DEFAULT '',
    calls                   INTEGER NOT NULL,
    errors                  INTEGER NOT NULL,
    limited                 INTEGER NOT NULL,
    refused                 INTEGER NOT NULL,
    estimated               INTEGER NOT NULL,
    input_tokens            INTEGER NOT NULL,
    cached_tokens           INTEGER NOT NULL,
    cache_write_tokens      INTEGER NOT NULL,
    cache_write_hour_tokens INTEGER NOT NULL,
    output_tokens           INTEGER NOT NULL,
    reasoning_tokens        INTEGER NOT NULL,
    charged                 REAL NOT NULL DEFAULT 0,
    last_at                 REAL NOT NULL,
    PRIMARY KEY (attempt_id, provider, model, prompt_above, service)
) WITHOUT ROWID, STRICT;

CREATE TABLE budgets (
    scope  TEXT NOT NULL,
    name   TEXT NOT NULL,
    calls  INTEGER,
    tokens INTEGER,
    usd    REAL,
    told   REAL NOT NULL DEFAULT 0,
    PRIMARY KEY (scope, name)
) WITHOUT ROWID, STRICT;

CREATE TABLE outages (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    provider    TEXT NOT NULL,
    since       REAL NOT NULL,
    last_at     REAL NOT NULL,
    answered_at REAL,
    until       REAL,
    status      INTEGER NOT NULL,
    problem     TEXT NOT NULL DEFAULT '',
    confirmed   INTEGER NOT NULL DEFAULT 0,
    limited     INTEGER NOT NULL DEFAULT 0,
    failed      INTEGER NOT NULL DEFAULT 0,
    unreachable INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE outage_calls (
    outage_id   INTEGER NOT NULL REFERENCES outages,
    attempt_id  INTEGER NOT NULL REFERENCES attempts,
    in_a_row    INTEGER NOT NULL,
    unreachable INTEGER NOT NULL,
    status      INTEGER NOT NULL,
    since       REAL NOT NULL,
    last_at     REAL NOT NULL,
    PRIMARY KEY (outage_id, attempt_id)
) WITHOUT ROWID, STRICT;
CREATE INDEX outage_calls_by_attempt ON outage_calls (attempt_id);

CREATE TABLE network_use (
    attempt_id     INTEGER NOT NULL REFERENCES attempts,
    host           TEXT NOT NULL,
    connections    INTEGER NOT NULL,
    sent_bytes     INTEGER NOT NULL,
    received_bytes INTEGER NOT NULL,
    PRIMARY KEY (attempt_id, host)
) WITHOUT ROWID, STRICT;
