#include <stdio.h>

#include "store/internal.h"

/* Version 1.
 *
 * Words (states, kinds) are stored as words: a number would tie the file to the order of an enum. STRICT keeps the types
 * right also in what is salvaged. The triggers are the second lock on the two promises of the lifecycle: events are
 * never changed, and what has ended never changes again. */
static const char version_1[] =
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;"

    "CREATE TABLE job ("
    " id INTEGER PRIMARY KEY CHECK (id > 0),"
    " state TEXT NOT NULL CHECK (state IN ('created','queued','downloading','processing',"
    "  'completed','imported','cleaned','failed','cancelled')),"
    " row_version INTEGER NOT NULL CHECK (row_version > 0),"
    " attempt INTEGER NOT NULL CHECK (attempt > 0),"
    " previous_id INTEGER NOT NULL,"
    " name TEXT NOT NULL, category TEXT NOT NULL, source TEXT NOT NULL, path TEXT NOT NULL,"
    " key BLOB CHECK (key IS NULL OR length(key) = 32), forced INTEGER NOT NULL,"
    " holds INTEGER NOT NULL, passes INTEGER NOT NULL,"
    " held_since INTEGER NOT NULL," /* 0: nothing holds it now, neither its own holds nor one on all */
    " held_ms INTEGER NOT NULL,"    /* before that, since the last transition */
    " progressed INTEGER NOT NULL," /* an article was done since the last transition */
    " created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,"
    " last_transition_at INTEGER NOT NULL, completed_at INTEGER NOT NULL,"
    " progress_at INTEGER NOT NULL, expires_at INTEGER NOT NULL, next_run_at INTEGER NOT NULL,"
    " first_not_found_at INTEGER NOT NULL,"
    " code TEXT NOT NULL, error_category TEXT NOT NULL, reason TEXT NOT NULL,"
    " total_bytes INTEGER NOT NULL DEFAULT 0, left_bytes INTEGER NOT NULL DEFAULT 0,"
    " articles INTEGER NOT NULL DEFAULT 0, articles_done INTEGER NOT NULL DEFAULT 0,"
    " articles_failed INTEGER NOT NULL DEFAULT 0,"
    " health INTEGER NOT NULL DEFAULT 0, critical INTEGER NOT NULL DEFAULT 0,"
    " blocks INTEGER NOT NULL DEFAULT 0, blocks_missing INTEGER NOT NULL DEFAULT 0,"
    " blocks_spare INTEGER NOT NULL DEFAULT 0, servers_asked INTEGER NOT NULL DEFAULT 0"
    ") STRICT;"
    "CREATE INDEX job_state ON job (state);"
    "CREATE INDEX job_key ON job (key) WHERE key IS NOT NULL;"
    "CREATE INDEX job_open ON job (id) WHERE state NOT IN ('cleaned','failed','cancelled');"
    "CREATE UNIQUE INDEX job_active_key ON job (key) WHERE key IS NOT NULL AND forced = 0"
    " AND state IN ('created','queued','downloading','processing');"
    "CREATE TRIGGER job_ended BEFORE UPDATE ON job"
    " WHEN OLD.state IN ('cleaned','failed','cancelled')"
    " BEGIN SELECT RAISE(ABORT, 'a job that has ended does not change'); END;"

    "CREATE TABLE idem (key TEXT PRIMARY KEY, job INTEGER NOT NULL, at INTEGER NOT NULL)"
    " STRICT, WITHOUT ROWID;"
    "CREATE INDEX idem_at ON idem (at);"

    /* AUTOINCREMENT: a number is not used again after the newest event was purged. */
    "CREATE TABLE event ("
    " seq INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, kind TEXT NOT NULL,"
    " job INTEGER NOT NULL, task INTEGER NOT NULL, stage TEXT NOT NULL, server INTEGER NOT NULL,"
    " from_state TEXT NOT NULL, to_state TEXT NOT NULL, code TEXT NOT NULL,"
    " category TEXT NOT NULL, attempt INTEGER NOT NULL, count INTEGER NOT NULL,"
    " value INTEGER NOT NULL, text TEXT NOT NULL) STRICT;"
    "CREATE INDEX event_job ON event (job, seq);"
    "CREATE INDEX event_at ON event (at);"
    "CREATE INDEX event_kind ON event (kind, seq);"
    "CREATE INDEX event_task ON event (task, seq) WHERE task > 0;"
    "CREATE TRIGGER event_changed BEFORE UPDATE ON event"
    " BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;"
    "CREATE TRIGGER event_removed BEFORE DELETE ON event"
    " WHEN NOT EXISTS (SELECT 1 FROM meta WHERE key = 'purging')"
    " BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;"

    "CREATE TABLE stage ("
    " job INTEGER NOT NULL REFERENCES job (id) ON DELETE CASCADE, name TEXT NOT NULL,"
    " state TEXT NOT NULL CHECK (state IN ('running','done','failed','interrupted')),"
    " ord INTEGER NOT NULL, run INTEGER NOT NULL, attempt INTEGER NOT NULL,"
    " progress INTEGER NOT NULL, started_at INTEGER NOT NULL, progress_at INTEGER NOT NULL,"
    " ended_at INTEGER NOT NULL, code TEXT NOT NULL, category TEXT NOT NULL, text TEXT NOT NULL,"
    " PRIMARY KEY (job, name)) STRICT, WITHOUT ROWID;"
    "CREATE INDEX stage_running ON stage (job) WHERE state = 'running';"

    "CREATE TABLE import_task ("
    " id INTEGER PRIMARY KEY AUTOINCREMENT,"
    " job INTEGER NOT NULL REFERENCES job (id),"
    " previous_task_id INTEGER UNIQUE REFERENCES import_task (id)," /* UNIQUE: a chain, not a tree */
    " state TEXT NOT NULL"
    "  CHECK (state IN ('pending','in_progress','completed','failed','cancelled')),"
    " source TEXT NOT NULL, dest TEXT NOT NULL, method TEXT NOT NULL,"
    " size_bytes INTEGER NOT NULL, source_dev INTEGER NOT NULL, source_ino INTEGER NOT NULL,"
    " attempt INTEGER NOT NULL, next_run_at INTEGER NOT NULL,"
    " created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, started_at INTEGER NOT NULL,"
    " progress_at INTEGER NOT NULL, ended_at INTEGER NOT NULL,"
    " code TEXT NOT NULL, category TEXT NOT NULL, text TEXT NOT NULL) STRICT;"
    "CREATE INDEX task_job ON import_task (job, id);"
    "CREATE INDEX task_state ON import_task (state);"
    "CREATE INDEX task_due ON import_task (next_run_at, id) WHERE state IN "
    "('pending','in_progress');"
    "CREATE UNIQUE INDEX task_source ON import_task (job, source) WHERE previous_task_id IS NULL;"
    "CREATE TRIGGER task_ended BEFORE UPDATE ON import_task"
    " WHEN OLD.state IN ('completed','failed','cancelled')"
    " BEGIN SELECT RAISE(ABORT, 'a task that has ended does not change'); END;"

    "CREATE TABLE history ("
    " job INTEGER PRIMARY KEY REFERENCES job (id),"
    " at INTEGER NOT NULL, hidden INTEGER NOT NULL, kind TEXT NOT NULL, status TEXT NOT NULL,"
    " name TEXT NOT NULL, filename TEXT NOT NULL, url TEXT NOT NULL, category TEXT NOT NULL,"
    " dest_dir TEXT NOT NULL, final_dir TEXT NOT NULL, dupe_key TEXT NOT NULL,"
    " dupe_mode TEXT NOT NULL, dupe_score INTEGER NOT NULL, par_status TEXT NOT NULL,"
    " unpack_status TEXT NOT NULL, move_status TEXT NOT NULL, script_status TEXT NOT NULL,"
    " delete_status TEXT NOT NULL, mark_status TEXT NOT NULL, url_status TEXT NOT NULL,"
    " dup_status TEXT NOT NULL, size_bytes INTEGER NOT NULL, downloaded_bytes INTEGER NOT NULL,"
    " files INTEGER NOT NULL, left_files INTEGER NOT NULL, articles INTEGER NOT NULL,"
    " articles_done INTEGER NOT NULL, articles_failed INTEGER NOT NULL, health INTEGER NOT NULL,"
    " critical INTEGER NOT NULL, download_sec INTEGER NOT NULL, post_sec INTEGER NOT NULL,"
    " par_sec INTEGER NOT NULL, repair_sec INTEGER NOT NULL, unpack_sec INTEGER NOT NULL,"
    " messages INTEGER NOT NULL, extra_par_blocks INTEGER NOT NULL, min_post_at INTEGER NOT NULL,"
    " max_post_at INTEGER NOT NULL, retry_data INTEGER NOT NULL,"
    " params BLOB NOT NULL, scripts BLOB NOT NULL, servers BLOB NOT NULL) STRICT;"
    "CREATE INDEX history_at ON history (at DESC, job DESC);"
    "CREATE INDEX history_dupe ON history (dupe_key) WHERE dupe_key <> '';"

    "CREATE TABLE volume (server INTEGER NOT NULL, day INTEGER NOT NULL, bytes INTEGER NOT NULL,"
    " done INTEGER NOT NULL, failed INTEGER NOT NULL, PRIMARY KEY (server, day))"
    " STRICT, WITHOUT ROWID;"
    "CREATE TABLE counter (server INTEGER PRIMARY KEY, total INTEGER NOT NULL,"
    " custom INTEGER NOT NULL, custom_at INTEGER NOT NULL, reset_at INTEGER NOT NULL,"
    " data_at INTEGER NOT NULL) STRICT;";

const struct schema_step schema_steps[] = {{version_1}};
const int schema_version = sizeof(schema_steps) / sizeof(schema_steps[0]);

int schema_upgrade(struct db *db, const struct schema_step *steps, int from, int to, struct err *e)
{
    int rv = 0;
    for (int v = from; rv == 0 && v < to; v++) {
        rv = db_begin(db, e);
        if (rv != 0) {
            break;
        }
        char number[96];
        snprintf(number, sizeof(number), "PRAGMA user_version = %d; PRAGMA application_id = %d;",
                 v + 1, SCHEMA_APPLICATION);
        rv = db_script(db, e, steps[v].sql);
        if (rv == 0) {
            rv = db_script(db, e, number);
        }
        rv = db_finish(db, rv, e);
        if (rv != 0) {
            err_wrap(e, rv, "schema %d to %d", v, v + 1);
        }
    }
    return rv;
}

/* FULL: in WAL mode NORMAL would lose what was acknowledged when the power goes. */
int schema_pragmas(struct db *db, struct err *e)
{
    return db_script(db, e,
                     "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                     "PRAGMA foreign_keys = ON; PRAGMA wal_autocheckpoint = 1000;"
                     "PRAGMA journal_size_limit = 16777216; PRAGMA cache_size = -8192;"
                     "PRAGMA temp_store = MEMORY; PRAGMA secure_delete = OFF;");
}
