/* fault.h - makes the k-th allocation fail, and counts them.
 *
 *     for (k = 1; ; k++) { fault_arm(k); rv = scenario(); if (!fault_fired()) break; assert rv... }
 */
#ifndef TESTS_FAULT_H
#define TESTS_FAULT_H

#include <stdbool.h>

void fault_arm(unsigned k); /* the k-th allocation from now on fails, once; 0: none, count only */
bool fault_fired(void);
unsigned fault_count(void); /* allocations since fault_arm() */
void fault_disarm(void);

#endif
