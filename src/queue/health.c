#include "queue/health.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "queue/model.h"

/* a * b / c without overflow, for a <= c. */
static unsigned permille(uint64_t part, uint64_t whole)
{
    return (unsigned)((unsigned __int128)part * 1000 / whole);
}

unsigned queue_file_health(const struct queue_file *f)
{
    uint64_t total = (uint64_t)f->count + f->posted->missing;
    return permille(total - f->failed - f->posted->missing, total);
}

unsigned queue_job_health(const struct queue_job *j)
{
    uint64_t others = j->par_bytes + j->extra_bytes;
    uint64_t payload = j->total_bytes - others;
    uint64_t failed = j->failed_bytes - j->failed_par_bytes - j->failed_extra_bytes;
    if (failed == 0 || payload == 0) {
        return 1000;
    }
    /* Parts the NZB does not name are in neither total: they only make it worse. */
    unsigned health = failed >= payload ? 0 : permille(payload - failed, payload);
    return health < 1000 ? health : 999;
}

static bool names_tell(const struct queue_job *j)
{
    for (uint32_t i = 0; i < j->file_count; i++) {
        const struct queue_file *f = j->files[i];
        if (queue_file_is_par2(f) || f->name_confirmed || strchr(queue_file_name(f), '.') != NULL) {
            return true;
        }
    }
    return j->file_count == 0;
}

unsigned queue_job_critical(const struct queue_job *j)
{
    uint64_t size = j->total_bytes - j->extra_bytes;
    uint64_t good = j->par_bytes > j->failed_par_bytes ? j->par_bytes - j->failed_par_bytes : 0;
    if (size == 0) {
        return 1000;
    }
    if (size == j->par_bytes) {
        return 0;
    }
    if (j->par_bytes == 0) {
        return names_tell(j) ? 1000 : QUEUE_CRITICAL_UNKNOWN;
    }
    if (good * 2 > size) {
        return 0;
    }
    unsigned critical = permille(size - 2 * good, size - good);
    return critical < 1000 ? critical : 999;
}

int queue_health_check_find(const char *word)
{
    static const struct {
        const char *word;
        enum queue_health_check check;
    } rows[] = {
        {"none", QUEUE_HEALTH_NONE},   {"park", QUEUE_HEALTH_PARK},
        {"pause", QUEUE_HEALTH_PARK},  {"delete", QUEUE_HEALTH_DELETE},
        {"dupe", QUEUE_HEALTH_DELETE},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcasecmp(rows[i].word, word) == 0) {
            return (int)rows[i].check;
        }
    }
    return -1;
}

enum queue_health_check queue_health_verdict(const struct queue_job *j,
                                             enum queue_health_check mode)
{
    struct queue_blocks b = queue_job_blocks(j);
    bool lost = b.known ? b.lost > b.here + b.wanted + b.available
                        : queue_job_health(j) < queue_job_critical(j);
    return lost ? mode : QUEUE_HEALTH_NONE;
}

/* ---- in blocks ---- */

struct queue_damage {
    uint64_t slice;
    uint64_t size;    /* of the file, decoded */
    uint64_t nominal; /* decoded bytes of a usual part; 0 unknown */
    uint32_t blocks;
    uint64_t lost[]; /* a bit per block */
};

void queue_damage_free(struct queue_file *f)
{
    mem_free(f->damage);
    f->damage = NULL;
}

/* Bytes [from, to) of the file are lost. */
static void lose(struct queue_file *f, uint64_t from, uint64_t to)
{
    struct queue_damage *d = f->damage;
    to = to < d->size ? to : d->size;
    for (uint64_t b = from / d->slice; from < to && b <= (to - 1) / d->slice; b++) {
        uint64_t bit = UINT64_C(1) << (b % 64);
        if ((d->lost[b / 64] & bit) == 0) {
            d->lost[b / 64] |= bit;
            f->job->par2_lost++;
        }
    }
}

/* Part `number` is lost: where it was, or where parts of the usual size would have put it. */
static void lose_part(struct queue_file *f, uint32_t number)
{
    struct queue_damage *d = f->damage;
    if (d->nominal == 0) {
        lose(f, 0, d->size); /* nothing of the file is known: count it all */
        return;
    }
    uint64_t from;
    if (!__builtin_mul_overflow((uint64_t)(number - 1), d->nominal, &from)) {
        lose(f, from, from + d->nominal);
    }
}

void queue_damage_failed(struct queue_file *f, uint32_t index)
{
    if (f->damage == NULL) {
        return;
    }
    const struct queue_part *p = &f->part[index];
    if (p->size > 0) {
        lose(f, p->offset, p->offset + p->size);
    } else {
        lose_part(f, f->nzb->number[f->posted->first + index]);
    }
}

/* The size of a usual part: that of any good one but the last, else the file divided evenly. */
static uint64_t nominal_size(const struct queue_file *f, uint64_t size)
{
    uint32_t last = f->nzb->number[f->posted->first + f->count - 1] + 0;
    for (uint32_t i = 0; i < f->count; i++) {
        uint32_t number = f->nzb->number[f->posted->first + i];
        if (f->state[i] == QUEUE_DONE && number < last && f->part[i].size > 0) {
            return f->part[i].size;
        }
    }
    uint64_t parts = (uint64_t)f->count + f->posted->missing;
    return size / parts + (size % parts != 0);
}

static int begin_damage(struct queue_file *f, uint64_t slice, uint64_t size)
{
    uint64_t blocks = size / slice + (size % slice != 0);
    if (blocks > 32768) {
        return ERR_LIMIT;
    }
    struct queue_damage *d = mem_zalloc(1, sizeof(*d) + (blocks / 64 + 1) * sizeof(uint64_t));
    if (d == NULL) {
        return -ENOMEM;
    }
    *d = (struct queue_damage){slice, size, nominal_size(f, size), (uint32_t)blocks};
    queue_damage_free(f);
    f->damage = d;
    uint32_t expected = 1;
    for (uint32_t i = 0; i < f->count; i++) {
        uint32_t number = f->nzb->number[f->posted->first + i];
        for (; expected < number; expected++) {
            lose_part(f, expected); /* a gap */
        }
        expected = number + 1;
        if (f->state[i] == QUEUE_FAILED) {
            queue_damage_failed(f, i);
        }
    }
    for (uint32_t left = f->count + f->posted->missing; expected <= left; expected++) {
        lose_part(f, expected);
    }
    return 0;
}

int queue_par2_known(struct queue *q, struct queue_job *j, uint64_t slice,
                     const struct queue_par2_member *members, uint32_t count)
{
    if (slice == 0) {
        return ERR_INVALID;
    }
    j->par2_slice = slice;
    j->par2_lost = 0;
    for (uint32_t i = 0; i < j->file_count; i++) {
        queue_damage_free(j->files[i]);
    }
    int rc = 0;
    for (uint32_t i = 0; i < count && rc == 0; i++) {
        struct queue_file *f = queue_file(q, members[i].file_id);
        if (f != NULL && f->job == j) {
            rc = begin_damage(f, slice, members[i].size);
        }
    }
    if (rc != 0) {
        j->par2_slice = 0;
    }
    queue_changed(q, j);
    return rc;
}

struct queue_blocks queue_job_blocks(const struct queue_job *j)
{
    struct queue_blocks b = {.known = j->par2_slice > 0, .lost = j->par2_lost};
    for (uint32_t i = 0; b.known && i < j->file_count; i++) {
        const struct queue_file *f = j->files[i];
        if (f->kind != NZB_PAR2_VOLUME) {
            continue;
        }
        /* A volume with failed articles still has most of its blocks; count in proportion, rounded down. */
        uint32_t good = (uint32_t)((uint64_t)f->blocks * (f->count - f->failed) /
                                   ((uint64_t)f->count + f->posted->missing));
        if (queue_file_ended(f)) {
            b.here += good;
        } else if (f->wanted) {
            b.wanted += good;
        } else if (!f->paused) {
            b.available += good;
        }
    }
    return b;
}
