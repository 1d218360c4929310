/* nzb.h - writes the NZB of each set. Before the server's thread starts. */
#ifndef NEWSD_NZB_H
#define NEWSD_NZB_H

#include "newsd/catalog.h"

#define NEWSD_POSTER "weir newsd <newsd@localhost>"

/* SET.nzb for each set that has articles, in the directory `dir`, which is made if it is not there. */
int newsd_nzb_write_all(const struct newsd_catalog *c, const char *dir, const char *group,
                        struct err *e);

#endif
