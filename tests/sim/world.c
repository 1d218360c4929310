/* world.c - the posts, and what each server has of them. Everything follows from the seed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

static uint64_t mix(uint64_t a, uint64_t b)
{
    struct rng r;
    rng_init(&r, a ^ (b * 0x9e3779b97f4a7c15u));
    return rng_next(&r);
}

uint32_t world_crc(const struct sim *s, unsigned post, unsigned index)
{
    return (uint32_t)mix(s->seed ^ 0xc4c, post * 1000 + index) | 1;
}

/* ---- posts ---- */

static void add_file(struct sim *s, struct post *p, const char *suffix, unsigned count,
                     unsigned blocks)
{
    if (p->file_count == POST_FILES || p->article_count + count > POST_ARTICLES) {
        return;
    }
    (void)s;
    struct post_file *f = &p->files[p->file_count++];
    snprintf(f->name, sizeof(f->name), "%s%s", p->title, suffix);
    f->count = count;
    f->first = p->article_count;
    f->blocks = blocks;
    f->volume = blocks > 0;
    f->main = strcmp(suffix, ".par2") == 0;
    p->article_count += count;
}

static void write_text(struct sim *s, struct post *p, unsigned number)
{
    size_t room = 4096 + p->article_count * 160u, n = 0;
    p->text = malloc(room);
    n += (size_t)snprintf(p->text + n, room - n,
                          "<nzb xmlns=\"http://www.newzbin.com/DTD/2003/nzb\">");
    for (unsigned i = 0; i < p->file_count; i++) {
        const struct post_file *f = &p->files[i];
        n += (size_t)snprintf(
            p->text + n, room - n,
            "<file poster=\"p\" date=\"%lld\" subject=\"&quot;%s&quot; yEnc (1/%u)\">"
            "<groups><group>a.b.c</group></groups><segments>",
            (long long)p->date, f->name, f->count);
        for (unsigned a = 0; a < f->count; a++) {
            n += (size_t)snprintf(p->text + n, room - n,
                                  "<segment bytes=\"1000\" number=\"%u\">%u.%u@sim</segment>",
                                  a + 1, number, f->first + a);
        }
        n += (size_t)snprintf(p->text + n, room - n, "</segments></file>");
    }
    n += (size_t)snprintf(p->text + n, room - n, "</nzb>");
    p->len = n;
    (void)s;
}

static void make_post(struct sim *s, unsigned number)
{
    struct post *p = &s->posts[number];
    /* Some share a title: duplicates by name. */
    snprintf(p->title, sizeof(p->title), "post%u", sim_chance(s, 350) ? 0 : number);
    bool young = sim_chance(s, 300);
    p->date = sim_wall_ms(s) / 1000 -
              (int64_t)(young ? sim_pick(s, 10, 3000) : sim_pick(s, 90000, 9000000));
    if (sim_chance(s, 750)) {
        add_file(s, p, ".par2", 1, 0);
    }
    unsigned data = (unsigned)sim_pick(s, 1, 3);
    for (unsigned i = 0; i < data; i++) {
        char suffix[16];
        snprintf(suffix, sizeof(suffix), ".r%02u", i);
        add_file(s, p, suffix, (unsigned)sim_pick(s, 1, 12), 0);
    }
    unsigned volumes = sim_chance(s, 700) ? (unsigned)sim_pick(s, 1, 3) : 0;
    for (unsigned i = 0; i < volumes; i++) {
        char suffix[24];
        unsigned blocks = 1u << i;
        snprintf(suffix, sizeof(suffix), ".vol%u+%u.par2", blocks - 1, blocks);
        add_file(s, p, suffix, blocks, blocks);
    }
    write_text(s, p, number);
}

bool world_find(const struct sim *s, const char *id, unsigned *post, unsigned *index)
{
    return sscanf(id, "%u.%u@sim", post, index) == 2 && *post < s->post_count &&
           *index < s->posts[*post].article_count;
}

/* ---- servers ---- */

static void make_server(struct sim *s, unsigned i)
{
    struct fake_server *v = &s->servers[i];
    v->conf = (struct coord_server){
        .id = i + 1,
        .level = (int)rng_below(&s->r, 3),
        .group = sim_chance(s, 100) ? 1 : 0,
        .optional = i > 0 && sim_chance(s, 200),
        .active = i == 0 || !sim_chance(s, 80),
        .connections = (uint8_t)sim_pick(s, 1, 5),
        .depth = (uint8_t)sim_pick(s, 1, 4),
        .retention_days = sim_chance(s, 150) ? 30 : 0,
    };
    snprintf(v->conf.name, sizeof(v->conf.name), "news%u", i + 1);
    v->latency_ms = (unsigned)(sim_chance(s, 200) ? sim_pick(s, 500, 20000) : sim_pick(s, 5, 300));
    v->missing = (unsigned)(sim_chance(s, 500) ? sim_pick(s, 0, 400) : 0);
    v->damaged = (unsigned)(sim_chance(s, 300) ? sim_pick(s, 0, 200) : 0);
    v->late = (unsigned)(sim_chance(s, 200) ? sim_pick(s, 0, 300) : 0);
    v->reliable = true;
    if (sim_chance(s, 450)) {
        v->reliable = false;
        v->wrong = (unsigned)(sim_chance(s, 300) ? sim_pick(s, 0, 200) : 0);
        v->breaks = (unsigned)(sim_chance(s, 200) ? sim_pick(s, 0, 100) : 0);
        v->drop = (unsigned)(sim_chance(s, 500) ? sim_pick(s, 0, 400) : 0);
        v->silent = (unsigned)(sim_chance(s, 200) ? sim_pick(s, 0, 100) : 0);
        v->max_connections = (unsigned)(sim_chance(s, 250) ? sim_pick(s, 1, 3) : 0);
        v->flap_ms = sim_chance(s, 200) ? sim_pick(s, 2000, 60000) : 0;
        if (sim_chance(s, 300)) {
            v->down_from_ms = s->now_ms + sim_pick(s, 0, 120000);
            v->down_until_ms = v->down_from_ms + sim_pick(s, 1000, 3600000);
        }
        if (sim_chance(s, 150)) {
            v->login_from_ms = s->now_ms + sim_pick(s, 0, 120000);
            v->login_until_ms = v->login_from_ms + sim_pick(s, 1000, 600000);
        }
    }
}

/* Fixed for a post, an article and a server: asking again changes nothing (but for LATE, which is there in the end). */
enum copy world_copy(const struct sim *s, unsigned server, unsigned post, unsigned index)
{
    const struct fake_server *v = &s->servers[server];
    unsigned of = (unsigned)(mix(s->seed * 31 + server, post * 1000 + index) % 1000);
    if (v->conf.group > 0) { /* servers of a group have the same articles */
        of = (unsigned)(mix(s->seed * 31 + 77, post * 1000 + index) % 1000);
        return of < 150 ? COPY_MISSING : COPY_GOOD;
    }
    if (of < v->missing) {
        return COPY_MISSING;
    }
    of -= v->missing;
    if (of < v->damaged) {
        return COPY_DAMAGED;
    }
    of -= v->damaged;
    if (of < v->wrong) {
        return COPY_WRONG;
    }
    of -= v->wrong;
    if (of < v->breaks) {
        return COPY_BREAKS; /* the server always dies of this one */
    }
    of -= v->breaks;
    return of < v->late ? COPY_LATE : COPY_GOOD;
}

void world_make(struct sim *s)
{
    s->server_count = (unsigned)sim_pick(s, 1, SERVERS);
    for (unsigned i = 0; i < s->server_count; i++) {
        make_server(s, i);
    }
    s->post_count = (unsigned)sim_pick(s, 1, POSTS);
    for (unsigned i = 0; i < s->post_count; i++) {
        make_post(s, i);
    }
    s->limits = (struct coord_limits){
        .rate = sim_chance(s, 200) ? sim_pick(s, 500, 100000) : 0,
        .quota_day = sim_chance(s, 150) ? sim_pick(s, 5000, 60000) : 0,
        .quota_start_day = 1,
        .disk_min_bytes = sim_chance(s, 300) ? 1000000 : 0,
        .propagation_sec = sim_chance(s, 200) ? (uint32_t)sim_pick(s, 60, 1800) : 0,
        .young_sec = 86400,
        .health_check = (uint8_t)rng_below(&s->r, 3),
        .post_slots = (uint8_t)sim_pick(s, 1, 3),
        .dupe_check = sim_chance(s, 700),
    };
}

void world_free(struct sim *s)
{
    for (unsigned i = 0; i < s->post_count; i++) {
        free(s->posts[i].text);
    }
}

/* ---- answers ---- */

static bool within(uint64_t now, uint64_t from, uint64_t until)
{
    return now >= from && now < until;
}

static enum coord_code trouble(struct sim *s, const struct fake_server *v, bool *began)
{
    *began = false;
    if (s->calm) {
        return COORD_OK;
    }
    if (within(s->now_ms, v->login_from_ms, v->login_until_ms)) {
        return sim_chance(s, 500) ? COORD_LOGIN : COORD_EXPIRED;
    }
    if (within(s->now_ms, v->down_from_ms, v->down_until_ms)) {
        return sim_chance(s, 500) ? COORD_CONNECT : COORD_DNS;
    }
    if (v->flap_ms > 0 && s->now_ms / v->flap_ms % 2 == 1) {
        return sim_chance(s, 500) ? COORD_SERVICE : COORD_TLS_IO;
    }
    if (v->max_connections > 0 && v->inflight > v->max_connections * 4) {
        return COORD_TOO_MANY;
    }
    if (sim_chance(s, v->drop)) {
        static const enum coord_code codes[] = {COORD_EOF,    COORD_TIMEOUT, COORD_TLS_IO,
                                                COORD_DESYNC, COORD_UNKNOWN, COORD_CANCELLED};
        *began = sim_chance(s, 600);
        return codes[rng_below(&s->r, 6)];
    }
    return COORD_OK;
}

/* The moment an answer arrives. */
void world_answer(struct sim *s, uint64_t n)
{
    struct fetch *f = &s->fetches[n % LEASES];
    if (f->lease == 0 || f->lease != n >> 13) {
        return; /* of an earlier life */
    }
    struct fake_server *v = &s->servers[f->server_id - 1];
    struct coord_event ev = {.type = COORD_EV_RESULT};
    struct coord_result *r = &ev.result;
    *r = (struct coord_result){.lease = f->lease, .text = NULL};
    r->code = f->cancelled && sim_chance(s, 500) ? COORD_CANCELLED : trouble(s, v, &r->began);
    v->inflight--;
    enum copy copy = world_copy(s, f->server_id - 1, f->post, f->index);
    if (copy == COPY_LATE) {
        int64_t age = sim_wall_ms(s) / 1000 - s->posts[f->post].date;
        copy = age < 3600 && s->now_ms - s->start_ms < 1200000 ? COPY_MISSING : COPY_GOOD;
    }
    const struct post *p = &s->posts[f->post];
    const struct post_file *pf = p->files;
    while (f->index >= pf->first + pf->count) {
        pf++;
    }
    uint32_t in_file = f->index - pf->first;
    if (r->code == COORD_OK) {
        static const enum coord_code bad[] = {COORD_YENC_CRC, COORD_YENC_SIZE, COORD_YENC_HEADER};
        switch (copy) {
        case COPY_MISSING:
        case COPY_LATE:
            r->code = sim_chance(s, 900) ? COORD_NOT_FOUND : COORD_REMOVED;
            break;
        case COPY_DAMAGED:
            r->code = bad[f->index % 3];
            break;
        case COPY_WRONG:
            r->code = COORD_WRONG_ARTICLE;
            break;
        case COPY_BREAKS:
            r->code = sim_chance(s, 500) ? COORD_EOF : COORD_DESYNC;
            r->began = true;
            break;
        case COPY_GOOD:
            break;
        }
    }
    if (r->code == COORD_OK || coord_error(r->code)->action == COORD_ACT_KEEP_DAMAGED) {
        bool good = r->code == COORD_OK;
        r->wire_bytes = 1000;
        r->data = good ? 1 : 2;
        r->part = (struct queue_part){.offset = in_file * 1000u,
                                      .size = good ? 1000 : 1 + f->index * 37 % 1000,
                                      .crc32 = world_crc(s, f->post, f->index) + !good};
        r->file_size = pf->count * 1000u;
        r->name = pf->name;
        s->day_bytes += 1000;
    }
    sim_say(s, "server %u answers %s for %u.%u (lease %llx)", f->server_id,
            coord_error(r->code)->name, f->post, f->index, (unsigned long long)f->lease);
    f->lease = 0;
    s->outstanding--;
    s->answer.post = f->post;
    s->answer.index = f->index;
    s->answer.good = r->code == COORD_OK;
    sim_step(s, &ev);
}
