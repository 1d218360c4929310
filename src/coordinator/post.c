/* post.c - post-processing as the coordinator sees it: a line, a few places, and what an end means. */
#include <stdio.h>

#include "coordinator/core.h"

void coord_post_enter(struct coord *c, struct queue_job *j)
{
    if (j->watch.post_state == POST_NONE) {
        j->watch.post_state = POST_IN_LINE;
        list_push_back(&c->post_line, &j->watch.post);
    }
}

void coord_post_leave(struct coord *c, struct queue_job *j)
{
    if (j->watch.post_state == POST_IN_LINE) {
        list_remove(&j->watch.post);
    } else if (j->watch.post_state == POST_RUNNING) {
        c->post_running--;
        coord_emit(c, &(struct coord_effect){.type = COORD_FX_POST_STOP, .job_id = j->id});
    }
    j->watch.post_state = POST_NONE;
}

void coord_post_fill(struct coord *c)
{
    uint32_t slots = c->limits.post_slots > 0 ? c->limits.post_slots : 1;
    if ((c->holds & QUEUE_HOLD_BIT(QUEUE_HOLD_DISK)) != 0) {
        return;
    }
    while (c->post_running < slots && !list_empty(&c->post_line)) {
        struct list *node = list_pop_front(&c->post_line);
        struct queue_job *j = LIST_ENTRY(node, struct queue_job, watch.post);
        j->watch.post_state = POST_RUNNING;
        c->post_running++;
        j->watch.since_ms = c->free_clock_ms; /* its time begins; to begin again is no progress */
        coord_record_job(c, COORD_REC_STAGE, j, COORD_OK, "post-processing begins");
        coord_emit(c, &(struct coord_effect){.type = COORD_FX_POST_START, .job_id = j->id});
    }
}

static void complete(struct coord *c, struct queue_job *j)
{
    if (coord_move(c, j, QUEUE_COMPLETED, "") != 0) {
        return;
    }
    coord_forget(c, j);
    coord_to_history(c, j);
}

static void fetch_more(struct coord *c, struct queue_job *j, uint32_t blocks)
{
    char text[96];
    uint32_t need = blocks > 0 ? blocks : 1;
    uint32_t got = queue_want_blocks(c->q, j, need);
    snprintf(text, sizeof(text), "%u recovery blocks are needed, %u can still be fetched", need,
             got);
    if (got < need) {
        coord_fail(c, j, COORD_PAR_FAILED, text);
        return;
    }
    coord_record_job(c, COORD_REC_PAR_REQUESTED, j, COORD_PAR_BLOCKS, text);
    (void)coord_move(c, j, QUEUE_DOWNLOADING, text);
    coord_save_soon(c);
}

/* Once more after a while; the hold brings it back (coord_go_on). */
static void try_later(struct coord *c, struct queue_job *j, unsigned n, const char *text)
{
    coord_record_job(c, COORD_REC_RETRY_SCHEDULED, j, COORD_STAGE, text);
    coord_hold(c, j, QUEUE_HOLD_BACKOFF, coord_backoff_ms(c, n, COORD_ARTICLE_BACKOFF_S), text);
}

static void ended(struct coord *c, struct queue_job *j, const struct coord_post *p)
{
    const struct coord_error *e = coord_error(p->code);
    const char *text = p->text != NULL ? p->text : "";
    switch (e->action) {
    case COORD_ACT_NONE:
        complete(c, j);
        break;
    case COORD_ACT_FETCH_MORE:
        fetch_more(c, j, p->blocks);
        break;
    case COORD_ACT_REPAIR_ONCE:
        if (j->watch.unpack_tries++ > 0) {
            coord_fail(c, j, p->code, text);
        } else {
            coord_record_job(c, COORD_REC_RETRY_SCHEDULED, j, p->code, text);
            coord_post_enter(c, j);
        }
        break;
    case COORD_ACT_ASK_PASSWORD:
        coord_hold(c, j, QUEUE_HOLD_PASSWORD, 0, e->text);
        break;
    case COORD_ACT_QUARANTINE:
        coord_emit(
            c, &(struct coord_effect){.type = COORD_FX_QUARANTINE,
                                      .file = {.job_id = j->id, .dir = j->dest_dir, .name = ""}});
        coord_fail(c, j, p->code, text);
        break;
    case COORD_ACT_HOLD_DISK:
        coord_no_space(c);
        try_later(c, j, 4, e->text);
        break;
    case COORD_ACT_DISK_GRACE:
        coord_disk_trouble(c, j, p->code);
        break;
    case COORD_ACT_FAIL_JOB:
        coord_fail(c, j, p->code, text);
        break;
    default:
        if (++j->watch.stage_tries >= COORD_STAGE_ATTEMPTS) {
            coord_fail(c, j, p->code, text);
        } else {
            try_later(c, j, j->watch.stage_tries, text[0] != '\0' ? text : e->text);
        }
        break;
    }
}

void coord_on_post(struct coord *c, const struct coord_post *p)
{
    struct queue_job *j = queue_job(c->q, p->job_id);
    if (j != NULL && p->kind == COORD_POST_MOVED) {
        if (coord_move(c, j, p->to, p->text != NULL ? p->text : "") == 0) {
            coord_save_soon(c);
        }
        return;
    }
    if (j == NULL || j->watch.post_state != POST_RUNNING) {
        c->stale_results++; /* it was stopped or removed meanwhile */
        return;
    }
    coord_progress(c, j);
    switch (p->kind) {
    case COORD_POST_PAR2:
        (void)queue_par2_known(c->q, j, p->slice, p->members, p->member_count);
        break;
    case COORD_POST_ENDED:
        j->watch.post_state = POST_NONE;
        c->post_running--;
        coord_record_job(c, COORD_REC_STAGE, j, p->code,
                         p->text != NULL ? p->text : "post-processing ended");
        ended(c, j, p);
        break;
    default:
        break;
    }
}
