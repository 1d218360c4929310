/* disk.c - news from the disk: writes that ended, files that are closed or lost, space that ran out. */
#include <stdio.h>

#include "coordinator/core.h"

/* ---- space ---- */

void coord_no_space(struct coord *c)
{
    c->no_space_ms = c->now.mono_ms;
    if ((c->holds & QUEUE_HOLD_BIT(QUEUE_HOLD_DISK)) == 0) {
        c->no_space_tries += c->no_space_tries < 6;
    }
    coord_set_hold(c, QUEUE_HOLD_DISK, true, "no space left on the disk");
    timer_set(&c->timers, &c->core_timers[CORE_SPACE], c->now.mono_ms + 1000);
}

void coord_space_due(struct coord *c)
{
    bool held = (c->holds & QUEUE_HOLD_BIT(QUEUE_HOLD_DISK)) != 0;
    if (c->limits.disk_min_bytes == 0 && !held) {
        return;
    }
    if (!c->space_asked) {
        c->space_asked = true;
        coord_emit(c, &(struct coord_effect){.type = COORD_FX_CHECK_SPACE});
    }
    timer_set(&c->timers, &c->core_timers[CORE_SPACE], c->now.mono_ms + COORD_SPACE_CHECK_MS);
}

/* A disk that said "full" is believed more than one that says how much is free: after each time, it rests longer. */
static bool rested(const struct coord *c)
{
    return c->no_space_ms == 0 ||
           c->now.mono_ms - c->no_space_ms >= (UINT64_C(1000) << c->no_space_tries);
}

void coord_on_space(struct coord *c, const struct coord_disk *d)
{
    uint64_t least = c->limits.disk_min_bytes;
    bool held = (c->holds & QUEUE_HOLD_BIT(QUEUE_HOLD_DISK)) != 0;
    c->space_asked = false;
    if (d->code != COORD_OK) {
        return; /* nothing is known: as it was */
    }
    c->free_bytes = d->free_bytes;
    if (!held && d->free_bytes < least) {
        char text[96];
        snprintf(text, sizeof(text), "%llu MiB are free, %llu must be",
                 (unsigned long long)(d->free_bytes >> 20), (unsigned long long)(least >> 20));
        coord_set_hold(c, QUEUE_HOLD_DISK, true, text);
    } else if (held && d->free_bytes >= least + least / 16 && d->free_bytes > 0 && rested(c)) {
        coord_set_hold(c, QUEUE_HOLD_DISK, false, "there is space again");
    }
}

/* ---- a job's directory cannot be written ---- */

void coord_disk_trouble(struct coord *c, struct queue_job *j, enum coord_code code)
{
    struct queue_watch *w = &j->watch;
    if (w->io_failed_ms == 0) {
        w->io_failed_ms = c->now.mono_ms > 0 ? c->now.mono_ms : 1;
        w->io_tries = 0;
    }
    coord_record_error(c, j, 0, code);
    if (c->now.mono_ms - w->io_failed_ms >= COORD_DISK_GRACE_MS) {
        coord_fail(c, j, COORD_DISK_IO, "");
        return;
    }
    if ((j->holds & QUEUE_HOLD_BIT(QUEUE_HOLD_BACKOFF)) == 0) {
        w->io_tries = (uint8_t)(w->io_tries < 5 ? w->io_tries + 1 : 5);
        coord_hold(c, j, QUEUE_HOLD_BACKOFF, coord_backoff_ms(c, w->io_tries, 15),
                   coord_error(COORD_DISK_IO)->text);
    }
}

static void trouble(struct coord *c, struct queue_job *j, enum coord_code code)
{
    if (coord_error(code)->action == COORD_ACT_HOLD_DISK) {
        coord_record_error(c, j, 0, code);
        coord_no_space(c);
    } else {
        coord_disk_trouble(c, j, code);
    }
}

/* ---- writes ---- */

void coord_on_written(struct coord *c, const struct coord_disk *d)
{
    struct lease *l = coord_lease_find(c, d->lease);
    if (l == NULL || !l->writing) {
        c->stale_results++;
        return;
    }
    const struct lease was = *l;
    struct queue_job *j = queue_file(c->q, was.article.file_id)->job;
    coord_lease_end(c, l);
    if (d->code != COORD_OK && !MUTANT(15)) {
        queue_article_return(c->q, was.article);
        trouble(c, j, d->code);
        return;
    }
    j->watch.io_failed_ms = 0;
    if (c->no_space_tries > 0 && (c->holds & QUEUE_HOLD_BIT(QUEUE_HOLD_DISK)) == 0) {
        c->no_space_tries = 0;
    }
    if (was.damaged) {
        queue_article_tried(c->q, was.article, was.server, QUEUE_BAD_DATA);
        return;
    }
    coord_article_settled(
        c, was.article,
        queue_article_done(c->q, was.article, was.server, &was.part, was.wire_bytes));
}

void coord_on_closed(struct coord *c, const struct coord_disk *d)
{
    struct queue_file *f = queue_file(c->q, d->file_id);
    if (f == NULL || !f->closing || !queue_file_ended(f)) {
        c->stale_results++;
        return;
    }
    struct queue_job *j = f->job;
    f->closing = false;
    if (d->code == COORD_OK) {
        f->opened = false;
        j->watch.io_failed_ms = 0;
        queue_file_close(c->q, f);
        coord_record_job(c, COORD_REC_FILE_DONE, j, COORD_OK, queue_file_name(f));
        coord_check_done(c, j);
        return;
    }
    trouble(c, j, d->code);
    if (coord_error(d->code)->action == COORD_ACT_HOLD_DISK) { /* its end is tried again */
        coord_hold(c, j, QUEUE_HOLD_BACKOFF, COORD_SPACE_CHECK_MS, coord_error(d->code)->text);
    }
}

/* A sync failed, or the file is not there any more: what it had is fetched again. Not before a save says so: after a
 * crash the old one would find a new file and take its holes for data. */
void coord_on_lost(struct coord *c, const struct coord_disk *d)
{
    struct queue_file *f = queue_file(c->q, d->file_id);
    if (f == NULL || f->closed) {
        return;
    }
    struct queue_job *j = f->job;
    coord_drop_file(c, f->id);
    f->opened = f->closing = false;
    queue_file_reset(c->q, f);
    coord_record_job(c, COORD_REC_ERROR, j, COORD_DISK_IO,
                     "what was written is lost; fetched again");
    coord_save_soon(c);
    if (j->place != QUEUE_ACTIVE || j->life.state > QUEUE_DOWNLOADING || MUTANT(24)) {
        return;
    }
    coord_hold(c, j, QUEUE_HOLD_BACKOFF, 0, "what was written is lost");
    j->watch.wait_changes = c->q->changes;
    c->waits_for_save = true;
}
