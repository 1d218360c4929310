/* main.c - runs seeds.   test_sim [--seed N [--trace]] [--from N] [--count N] [--quiet] */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim.h"

#ifdef COORD_MUTANTS
extern int coord_mutant;
int coord_mutant;
#endif

static struct sim sim;
static const char *program;

/* Also for checks of the core itself, which abort. */
static void on_abort(int sig)
{
    char text[256];
    fflush(stdout);
    int n = snprintf(text, sizeof(text), "seed %llu failed; see it with: %s --seed %llu --trace\n",
                     (unsigned long long)sim.seed, program, (unsigned long long)sim.seed);
    (void)!write(STDERR_FILENO, text, (size_t)n);
    signal(sig, SIG_DFL);
    raise(sig);
}

static uint64_t number(const char *text)
{
    return text != NULL ? strtoull(text, NULL, 10) : 0;
}

int main(int argc, char **argv)
{
    uint64_t from = 1, count = 2000;
    bool trace = false, quiet = false;
    program = argv[0];
    if (getenv("SIM_COUNT") != NULL) {
        count = number(getenv("SIM_COUNT"));
    }
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--seed") == 0) {
            from = number(value);
            count = 1;
            i++;
        } else if (strcmp(argv[i], "--from") == 0) {
            from = number(value);
            i++;
        } else if (strcmp(argv[i], "--count") == 0) {
            count = number(value);
            i++;
#ifdef COORD_MUTANTS
        } else if (strcmp(argv[i], "--mutant") == 0) {
            coord_mutant = (int)number(value);
            i++;
#endif
        } else if (strcmp(argv[i], "--trace") == 0) {
            trace = true;
        } else if (strcmp(argv[i], "--quiet") == 0) {
            quiet = true;
        } else {
            fprintf(stderr, "usage: %s [--seed N [--trace]] [--from N] [--count N] [--quiet]\n",
                    argv[0]);
            return 2;
        }
    }
    signal(SIGABRT, on_abort);
    uint64_t steps = 0, fetches = 0, crashes = 0;
    for (uint64_t seed = from; seed < from + count; seed++) {
        sim_run(&sim, seed, trace);
        steps += sim.steps;
        fetches += sim.fetch_count;
        crashes += sim.crashes;
        if (!quiet && (seed - from + 1) % 10000 == 0) {
            printf("%llu seeds\n", (unsigned long long)(seed - from + 1));
            fflush(stdout);
        }
    }
    printf("%llu seeds, %llu steps, %llu fetches, %llu crashes: no violation\n",
           (unsigned long long)count, (unsigned long long)steps, (unsigned long long)fetches,
           (unsigned long long)crashes);
    return 0;
}
