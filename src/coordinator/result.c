/* result.c - what a worker's answer means for the article, the server and the job. The error table decides; this file
 * carries it out.
 *
 * A good article is written first and counts only when the disk has it (disk.c). A damaged one is written too when it
 * is better than what is there, so that PAR2 has something to work with; the article still goes to the next server.
 *
 * Who pays for a broken connection? The server, never the article, with one exception that keeps an article on which a
 * server always breaks from being asked for ever: if its own answer had begun, and the server was seen to work since
 * the last break (or broke inside articles COORD_SERVER_BLAME times in a row), the article is charged an attempt. */
#include <stdio.h>
#include <string.h>

#include "coordinator/core.h"

void coord_discard(struct coord *c, uint64_t data)
{
    if (data != 0) {
        coord_emit(c, &(struct coord_effect){.type = COORD_FX_DISCARD, .data = data});
    }
}

/* ---- settled articles ---- */

static void journal(struct coord *c, const struct queue_file *f, uint32_t index, bool failed)
{
    coord_emit(c,
               &(struct coord_effect){
                   .type = COORD_FX_JOURNAL,
                   .journal = {.article = {f->id, index}, .part = f->part[index], .failed = failed},
               });
}

void coord_article_settled(struct coord *c, struct queue_ref a, unsigned news)
{
    struct queue_file *f = queue_file(c->q, a.file_id);
    struct queue_job *j = f->job;
    bool failed = f->state[a.index] == QUEUE_FAILED;
    journal(c, f, a.index, failed);
    if ((news & QUEUE_NEWS_FILE_ENDED) != 0 && !(MUTANT(3) && failed)) {
        coord_close_file(c, f);
    }
    if (failed) {
        coord_check_health(c, j);
    }
}

static struct kept *kept_place(struct coord *c, struct queue_ref a)
{
    return &c->kept[(a.file_id * 31 + a.index) % KEPT];
}

static const struct queue_part *kept_part(struct coord *c, struct queue_ref a)
{
    const struct kept *k = kept_place(c, a);
    bool same = k->article.file_id == a.file_id && k->article.index == a.index;
    return same && k->part.size > 0 ? &k->part : NULL;
}

void coord_article_failed(struct coord *c, struct queue_ref a, enum coord_code code)
{
    coord_record_error(c, queue_file(c->q, a.file_id)->job, 0, code);
    coord_article_settled(c, a, queue_article_failed(c->q, a, kept_part(c, a)));
}

/* ---- good and damaged data ---- */

static bool part_is_sane(const struct queue_file *f, const struct coord_result *r)
{
    uint64_t end = 0;
    uint64_t size = f->size != 0 ? f->size : r->file_size;
    return r->part.size > 0 && !__builtin_add_overflow(r->part.offset, r->part.size, &end) &&
           end <= INT64_MAX && (size == 0 || end <= size);
}

static void learn(struct coord *c, struct queue_file *f, const struct coord_result *r)
{
    if (f->size == 0 && r->file_size > 0 && r->file_size <= INT64_MAX) {
        queue_file_set_size(c->q, f, r->file_size);
    }
    if (f->posted->name_guessed && f->found_name == NULL && r->name != NULL && r->name[0] != '\0') {
        (void)queue_file_identify(c->q, f, r->name, (enum nzb_kind)f->kind, f->blocks);
    }
}

static void open_file(struct coord *c, struct queue_file *f)
{
    if (f->opened) {
        return;
    }
    f->opened = true;
    coord_emit(c, &(struct coord_effect){
                      .type = COORD_FX_OPEN_FILE,
                      .file = {.job_id = f->job->id,
                               .file_id = f->id,
                               .dir = f->job->dest_dir,
                               .name = queue_file_name(f),
                               .size = f->size,
                               .has_data = f->done > 0},
                  });
}

static void write_part(struct coord *c, struct lease *l, struct queue_file *f,
                       const struct coord_result *r, bool damaged)
{
    open_file(c, f);
    coord_lease_back(c, l);
    l->part = r->part;
    l->wire_bytes = r->wire_bytes;
    l->damaged = damaged;
    l->code = r->code;
    if (damaged) {
        *kept_place(c, l->article) = (struct kept){l->article, r->part};
    }
    coord_emit(c, &(struct coord_effect){
                      .type = COORD_FX_WRITE,
                      .write = {.lease = l->id,
                                .data = r->data,
                                .file_id = f->id,
                                .offset = r->part.offset,
                                .size = r->part.size},
                  });
}

static void on_damaged(struct coord *c, struct lease *l, const struct coord_result *r)
{
    struct queue_file *f = queue_file(c->q, l->article.file_id);
    const struct queue_part *have = kept_part(c, l->article);
    bool better = have == NULL || r->part.size > have->size;
    if (r->data != 0 && r->code != COORD_WRONG_ARTICLE && part_is_sane(f, r) && better) {
        write_part(c, l, f, r, !MUTANT(4));
        return;
    }
    coord_discard(c, r->data);
    queue_article_tried(c->q, l->article, l->server, QUEUE_BAD_DATA);
    coord_lease_end(c, l);
}

static void on_good(struct coord *c, struct lease *l, const struct coord_result *r)
{
    struct queue_file *f = queue_file(c->q, l->article.file_id);
    struct server *s = c->servers[l->server];
    if (!part_is_sane(f, r) || r->data == 0) {
        struct coord_result bad = *r;
        bad.code = COORD_YENC_SIZE;
        s->bad++;
        coord_record_error(c, f->job, s->conf.id, bad.code);
        on_damaged(c, l, &bad);
        return;
    }
    s->good++;
    learn(c, f, r);
    write_part(c, l, f, r, false);
}

/* ---- trouble ---- */

/* Costs the article an attempt; it waits, or this server is given up for it. */
static void charge(struct coord *c, struct lease *l)
{
    const struct queue_file *f = queue_file(c->q, l->article.file_id);
    unsigned attempt = queue_attempts(f, l->article.index) + 1;
    if (MUTANT(5)) { /* no count, no pause, no memory of the server */
        queue_article_return(c->q, l->article);
        return;
    }
    if (attempt >= COORD_ARTICLE_ATTEMPTS) {
        queue_article_tried(c->q, l->article, l->server, QUEUE_GAVE_UP);
        return;
    }
    uint64_t at = c->now.mono_ms + coord_backoff_ms(c, attempt, COORD_ARTICLE_BACKOFF_S);
    if (queue_article_wait(c->q, l->article, at) != 0) {
        queue_article_return(c->q, l->article);
    }
}

static void on_broken(struct coord *c, struct lease *l, const struct coord_result *r)
{
    struct server *s = c->servers[l->server];
    bool article_pays = r->began && (s->good_since || s->body_failures >= COORD_SERVER_BLAME);
    s->broken++;
    s->body_failures += r->began;
    s->good_since = false;
    if (article_pays) {
        charge(c, l);
    } else {
        queue_article_return(c->q, l->article);
    }
    coord_lease_end(c, l);
    coord_server_broke(c, s, r->code, r->text);
}

/* A connection that talks nonsense is closed by its pool. When all of them do, it is the server. */
static void on_nonsense(struct coord *c, struct lease *l, const struct coord_result *r)
{
    struct server *s = c->servers[l->server];
    s->broken++;
    s->body_failures++;
    s->good_since = false;
    bool probe = s->life.state != COORD_SERVER_UP;
    charge(c, l);
    coord_lease_end(c, l);
    if (probe || s->body_failures >= COORD_SERVER_BLAME) {
        coord_server_broke(c, s, r->code, r->text);
    }
}

static void act(struct coord *c, struct lease *l, const struct coord_result *r)
{
    struct server *s = c->servers[l->server];
    switch (coord_error(r->code)->action) {
    case COORD_ACT_NONE:
        coord_server_good(c, s);
        on_good(c, l, r);
        return;
    case COORD_ACT_NEXT_SERVER:
        coord_server_good(c, s);
        s->missing++;
        queue_article_tried(c->q, l->article, l->server, QUEUE_NOT_THERE);
        coord_lease_end(c, l);
        break;
    case COORD_ACT_KEEP_DAMAGED:
        coord_server_good(c, s);
        s->bad++;
        on_damaged(c, l, r);
        return;
    case COORD_ACT_BACK_OFF:
        on_broken(c, l, r);
        break;
    case COORD_ACT_GIVE_BACK: /* nobody asked for it: its pool is not working */
        queue_article_return(c->q, l->article);
        coord_lease_end(c, l);
        coord_server_broke(c, s, r->code, r->text);
        break;
    case COORD_ACT_DISABLE:
        queue_article_return(c->q, l->article);
        coord_lease_end(c, l);
        coord_server_disable(c, s, r->text != NULL ? r->text : coord_error(r->code)->text);
        break;
    case COORD_ACT_FEWER:
        queue_article_return(c->q, l->article);
        coord_lease_end(c, l);
        coord_server_too_many(c, s, r->text);
        break;
    default: /* also codes that no article can have: bounded, like all nonsense */
        on_nonsense(c, l, r);
        break;
    }
    coord_discard(c, r->data);
}

void coord_on_result(struct coord *c, const struct coord_result *r)
{
    struct lease *l = coord_lease_find(c, r->lease);
    coord_quota_used(c, r->wire_bytes);
    if (l == NULL || l->gone || l->writing) {
        c->stale_results++;
        coord_discard(c, r->data);
        if (l != NULL && l->gone) {
            struct server *s = c->servers[l->server];
            coord_lease_end(c, l);
            coord_server_used(c, s, r->wire_bytes);
            coord_server_news(c, s, r->code, r->text);
        }
        return;
    }
    struct server *s = c->servers[l->server];
    struct queue_job *j = queue_file(c->q, l->article.file_id)->job;
    coord_server_used(c, s, r->wire_bytes);
    if (r->wire_bytes > 0) {
        coord_progress(c, j);
    }
    if (coord_error(r->code)->category != COORD_GOOD) {
        coord_record_error(c, j, s->conf.id, r->code);
    }
    act(c, l, r);
}
