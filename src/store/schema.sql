-- The store of one profile, version 1 (PRAGMA user_version). Read by `show`, written by the one sender.

CREATE TABLE resources (
    id INTEGER PRIMARY KEY,
    attributes TEXT NOT NULL UNIQUE             -- JSON, frozen per conversation at capture
) STRICT;

CREATE TABLE conversations (
    id TEXT PRIMARY KEY,
    state TEXT NOT NULL,                        -- the reducer's state, JSON
    open INTEGER NOT NULL,                      -- 1 while the session has not ended
    last_event_ns INTEGER NOT NULL,             -- CLOCK_REALTIME
    resource INTEGER NOT NULL REFERENCES resources (id)
) STRICT;

CREATE TABLE batches (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    resource INTEGER NOT NULL REFERENCES resources (id),
    bisection INTEGER,                          -- the batch that was refused and split; NULL before that
    tries INTEGER NOT NULL DEFAULT 0,
    first_try_ns INTEGER,
    next_try_ns INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE bisections (
    id INTEGER PRIMARY KEY,                     -- the id of the batch that was split
    accepted INTEGER NOT NULL DEFAULT 0         -- 1 once any part of it was accepted
) STRICT;

CREATE TABLE spans (
    id INTEGER PRIMARY KEY AUTOINCREMENT,       -- order of export
    conversation TEXT NOT NULL,
    span_id TEXT NOT NULL,
    role TEXT NOT NULL,
    start_ns INTEGER NOT NULL,
    body TEXT NOT NULL,                         -- the span, JSON
    bytes INTEGER NOT NULL,                     -- its size when encoded for OTLP, an upper bound
    resource INTEGER NOT NULL REFERENCES resources (id),
    queued_ns INTEGER NOT NULL,
    batch INTEGER REFERENCES batches (id),      -- frozen before the first try
    outcome TEXT,                               -- NULL while queued; delivered, partial, refused, expired, unreadable
    settled_ns INTEGER
) STRICT;

CREATE INDEX spans_queued ON spans (id) WHERE outcome IS NULL AND batch IS NULL;
CREATE INDEX spans_waiting ON spans (queued_ns) WHERE outcome IS NULL;
CREATE INDEX spans_of_batch ON spans (batch) WHERE batch IS NOT NULL;
CREATE INDEX spans_of_conversation ON spans (conversation, start_ns);
CREATE INDEX spans_settled ON spans (settled_ns) WHERE settled_ns IS NOT NULL;
CREATE INDEX spans_of_id ON spans (span_id);

-- Spool files that are folded but perhaps not yet removed: a crash between the two must not fold them twice.
CREATE TABLE folded_files (name TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;

CREATE TABLE counters (name TEXT PRIMARY KEY, count INTEGER NOT NULL, last_ns INTEGER NOT NULL) STRICT, WITHOUT ROWID;

-- One row: how the destination answered last.
CREATE TABLE delivery (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    answered_ns INTEGER,                        -- last answer of any kind
    delivered_ns INTEGER,                       -- last acceptance
    outcome TEXT,                               -- delivered, partial, retry, refused, configuration
    reason TEXT,                                -- machine-readable, e.g. http_503
    message TEXT,                               -- in plain words; no payload text, no keys
    failing_since_ns INTEGER,                   -- NULL while answers are good
    failures INTEGER NOT NULL DEFAULT 0,        -- in a row
    next_try_ns INTEGER NOT NULL DEFAULT 0,
    plain INTEGER NOT NULL DEFAULT 0,           -- 1 once a receiver took uncompressed what it had refused as gzip
    boot_id TEXT,                               -- the boot in which the wall clock was last looked at
    wall_offset_ns INTEGER                      -- CLOCK_REALTIME minus CLOCK_BOOTTIME then
) STRICT;

INSERT INTO delivery (id) VALUES (1);
