/* limit.c - what holds the whole queue: pause, schedule, quota, speed.
 *
 * `holds` are the real ones, recorded and shown. `gates` are finer: they close the picking for a moment without being
 * worth a word, e.g. when what is under way would already use up the quota. What the queue sees is both; only for
 * SERVERS_DOWN the gate alone decides, since a probe must get through while the hold stays. Force goes past GLOBAL,
 * SCHEDULE and QUOTA inside the queue itself. */
#include <stdio.h>

#include "coordinator/core.h"

void coord_apply_holds(struct coord *c)
{
    uint32_t down = QUEUE_HOLD_BIT(QUEUE_HOLD_SERVERS_DOWN);
    uint32_t seen = (c->holds & ~down) | c->gates;
    if (MUTANT(8)) { /* a pause that nobody hears of */
        seen &= ~QUEUE_HOLD_BIT(QUEUE_HOLD_GLOBAL);
    }
    if (MUTANT(9) &&
        (seen & QUEUE_HOLD_BIT(QUEUE_HOLD_GLOBAL)) != 0) { /* Force does not go past it */
        seen |= QUEUE_HOLD_BIT(QUEUE_HOLD_DISK);
    }
    queue_set_global_holds(c->q, seen);
}

void coord_set_hold(struct coord *c, enum queue_hold hold, bool on, const char *text)
{
    uint32_t bit = QUEUE_HOLD_BIT(hold);
    if (((c->holds & bit) != 0) == on) {
        return;
    }
    c->holds ^= bit;
    c->holds_since_at[hold] = on ? coord_now_at(c) : 0;
    coord_apply_holds(c);
    coord_record(c, &(struct coord_record){
                        .type = on ? COORD_REC_HOLD_SET : COORD_REC_HOLD_CLEARED,
                        .to = (int)hold,
                        .text = text,
                    });
}

void coord_gate(struct coord *c, enum queue_hold hold, bool on)
{
    uint32_t bit = QUEUE_HOLD_BIT(hold);
    uint32_t gates = on ? c->gates | bit : c->gates & ~bit;
    if (gates != c->gates) {
        c->gates = gates;
        coord_apply_holds(c);
    }
}

/* ---- pause ---- */

void coord_pause(struct coord *c, int64_t seconds)
{
    char text[64] = "paused by the user";
    struct timer *t = &c->core_timers[CORE_PAUSE];
    c->pause_until_at = 0;
    timer_stop(&c->timers, t);
    if (seconds > 0) {
        uint64_t ms = seconds < 366 * 86400 ? (uint64_t)seconds * 1000 : UINT64_C(366) * 86400000;
        c->pause_until_at = coord_now_at(c) + (int64_t)(ms / 1000);
        timer_set(&c->timers, t, c->now.mono_ms + ms);
        snprintf(text, sizeof(text), "paused for %llu s", (unsigned long long)(ms / 1000));
    }
    coord_set_hold(c, QUEUE_HOLD_GLOBAL, true, text);
}

void coord_resume(struct coord *c)
{
    c->pause_until_at = 0;
    timer_stop(&c->timers, &c->core_timers[CORE_PAUSE]);
    coord_set_hold(c, QUEUE_HOLD_GLOBAL, false, "resumed");
    coord_set_hold(c, QUEUE_HOLD_SCHEDULE, false, "resumed");
}

void coord_pause_due(struct coord *c)
{
    c->pause_until_at = 0;
    coord_set_hold(c, QUEUE_HOLD_GLOBAL, false, "the pause is over");
}

/* ---- speed ---- */

void coord_rate_set(struct coord *c, uint64_t rate)
{
    c->limits.rate = rate;
    coord_emit(c, &(struct coord_effect){.type = COORD_FX_RATE, .bytes = rate});
}

/* Under a limit no more is asked for than it lets through in a few seconds: leases do not grow old in a pipe, and a
 * pause or a job with a higher priority is felt at once. */
uint64_t coord_flight_room(const struct coord *c)
{
    if (c->limits.rate == 0) {
        return UINT64_MAX;
    }
    uint64_t room = c->limits.rate / 1000 * COORD_FLIGHT_MS;
    return c->limits.rate > UINT64_MAX / COORD_FLIGHT_MS ? UINT64_MAX : room > 0 ? room : 1;
}

/* ---- quota ---- */

static int64_t local_days(const struct coord *c)
{
    int64_t at = coord_now_at(c) + c->limits.utc_offset_sec;
    return at >= 0 ? at / 86400 : -((-at + 86399) / 86400);
}

/* Days since 1970 to year, month, day (H. Hinnant's civil_from_days). */
static void civil(int64_t days, int64_t *year, int *month, int *day)
{
    days += 719468;
    int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    int64_t doe = days - era * 146097;
    int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    int64_t mp = (5 * doy + 2) / 153;
    *day = (int)(doy - (153 * mp + 2) / 5 + 1);
    *month = (int)(mp < 10 ? mp + 3 : mp - 9);
    *year = yoe + era * 400 + (*month <= 2);
}

static int days_in(int64_t year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (month == 2 && leap);
}

/* A number that grows by one with every quota month. */
static int64_t quota_month(const struct coord *c, int64_t days)
{
    int64_t year = 0;
    int month = 0, day = 0;
    civil(days, &year, &month, &day);
    int start = c->limits.quota_start_day > 0 ? c->limits.quota_start_day : 1;
    int last = days_in(year, month);
    start = start < last ? start : last;
    return year * 12 + month - (day < start);
}

/* A clock that went back starts no new period, but what follows is counted from there. */
static void new_period(int64_t *period, int64_t now, uint64_t *bytes)
{
    if (now > *period) {
        *bytes = 0;
    }
    *period = now;
}

static bool over(uint64_t quota, uint64_t bytes)
{
    return quota > 0 && bytes >= quota;
}

void coord_quota_check(struct coord *c)
{
    const struct coord_limits *l = &c->limits;
    uint64_t coming = MUTANT(10) ? 0 : c->reserved_bytes;
    coord_gate(c, QUEUE_HOLD_QUOTA,
               over(l->quota_day, c->day_bytes + coming) ||
                   over(l->quota_month, c->month_bytes + coming));
    bool day = over(l->quota_day, c->day_bytes), month = over(l->quota_month, c->month_bytes);
    coord_set_hold(c, QUEUE_HOLD_QUOTA, day || month,
                   !day && !month ? "a new period has begun"
                   : day          ? "the quota of the day is used up"
                                  : "the quota of the month is used up");
}

void coord_quota_used(struct coord *c, uint64_t bytes)
{
    c->day_bytes += bytes;
    c->month_bytes += bytes;
    coord_quota_check(c);
}

void coord_calendar_due(struct coord *c)
{
    int64_t days = local_days(c);
    bool other_day = days != c->day;
    new_period(&c->day, days, &c->day_bytes);
    new_period(&c->month, quota_month(c, days), &c->month_bytes);
    coord_quota_check(c);
    c->servers_changed = c->servers_changed || other_day; /* retention moves with the day */
    timer_set(&c->timers, &c->core_timers[CORE_CALENDAR], c->now.mono_ms + 60000);
}

void coord_calendar_start(struct coord *c)
{
    c->day = local_days(c);
    c->month = quota_month(c, c->day);
}

void coord_limits_set(struct coord *c, const struct coord_limits *l)
{
    uint64_t rate = c->limits.rate;
    c->limits = *l;
    if (rate != l->rate) {
        coord_rate_set(c, l->rate);
    }
    c->month = quota_month(c, local_days(c)); /* another start day is no new month */
    coord_calendar_due(c);
    coord_space_due(c);
}
