/* errors.h - everything that can go wrong with an article, a server, a job or the disk: one row each.
 *
 * A row says how the trouble is named, whether trying again can help (category), what it is a fault of (scope) and what
 * the coordinator does about it (action). Workers only report a code; what follows from it is decided in here and in
 * result.c, post.c and disk.c, which switch on the action, never on the code. A server- or file-system-scope error never
 * costs an article an attempt. */
#ifndef COORDINATOR_ERRORS_H
#define COORDINATOR_ERRORS_H

enum coord_category { COORD_GOOD, COORD_TRANSIENT, COORD_PERMANENT };
enum coord_scope {
    COORD_SCOPE_NONE,
    COORD_SCOPE_CONNECTION,
    COORD_SCOPE_SERVER,
    COORD_SCOPE_ARTICLE, /* of one article on one server */
    COORD_SCOPE_JOB,
    COORD_SCOPE_DISK,
    COORD_SCOPE_STAGE,
};
enum coord_action {
    COORD_ACT_NONE,
    COORD_ACT_GIVE_BACK,    /* nobody's fault: open again as it was */
    COORD_ACT_BACK_OFF,     /* other servers now; this one rests */
    COORD_ACT_NEXT_SERVER,  /* not there */
    COORD_ACT_KEEP_DAMAGED, /* next server; the best copy stays for PAR2 */
    COORD_ACT_DISABLE,      /* the server is not used until a user says so */
    COORD_ACT_FEWER,        /* one connection fewer for 10 minutes */
    COORD_ACT_CLOSE,        /* the connection is gone for good; costs an attempt */
    COORD_ACT_FETCH_MORE,   /* back to downloading for exactly these volumes */
    COORD_ACT_FAIL_JOB,     /* and a standby duplicate is woken */
    COORD_ACT_REPAIR_ONCE,  /* verify and repair, then once more */
    COORD_ACT_ASK_PASSWORD, /* PASSWORD hold */
    COORD_ACT_QUARANTINE,   /* failed; the files are put out of reach */
    COORD_ACT_HOLD_DISK,    /* DISK hold; resumes by itself */
    COORD_ACT_DISK_GRACE,   /* 60 s of trying, then the job fails */
    COORD_ACT_RETRY_URL,
    COORD_ACT_RETRY_STAGE, /* three attempts, then the job fails */
};

/* X(id, name in events and RPC, category, scope, action, in words) */
#define COORD_CODE_MAP(X)                                                                         \
    X(OK, "ok", GOOD, NONE, NONE, "all is well")                                                  \
    X(CANCELLED, "cancelled", GOOD, NONE, GIVE_BACK, "was given back untried")                    \
    X(DNS, "dns", TRANSIENT, SERVER, BACK_OFF, "the server's name does not resolve")              \
    X(CONNECT, "connect", TRANSIENT, SERVER, BACK_OFF, "the server cannot be reached")            \
    X(TLS_IO, "tls_io", TRANSIENT, SERVER, BACK_OFF, "the TLS connection broke")                  \
    X(TIMEOUT, "timeout", TRANSIENT, SERVER, BACK_OFF, "the server went silent")                  \
    X(EOF, "eof", TRANSIENT, SERVER, BACK_OFF, "the connection ended inside an article")          \
    X(SERVICE, "service", TRANSIENT, SERVER, BACK_OFF, "the server does not serve now (400)")     \
    X(NOT_FOUND, "not_found", PERMANENT, ARTICLE, NEXT_SERVER, "no such article (430, 423, 420)") \
    X(REMOVED, "removed", PERMANENT, ARTICLE, NEXT_SERVER, "the article was taken down (451)")    \
    X(LOGIN, "login", PERMANENT, SERVER, DISABLE, "the server refused the login (481, 482)")      \
    X(EXPIRED, "expired", PERMANENT, SERVER, DISABLE, "the account has expired")                  \
    X(CERTIFICATE, "certificate", PERMANENT, SERVER, DISABLE, "the certificate is not trusted")   \
    X(CIPHER, "cipher", PERMANENT, SERVER, DISABLE, "no common TLS version or cipher")            \
    X(TOO_MANY, "too_many", TRANSIENT, SERVER, FEWER, "too many connections (502, 400)")          \
    X(YENC_HEADER, "yenc_header", PERMANENT, ARTICLE, KEEP_DAMAGED, "the yEnc header is bad")     \
    X(YENC_SIZE, "yenc_size", PERMANENT, ARTICLE, KEEP_DAMAGED, "the article has the wrong size") \
    X(YENC_CRC, "yenc_crc", PERMANENT, ARTICLE, KEEP_DAMAGED, "the checksum does not agree")      \
    X(WRONG_ARTICLE, "wrong_article", PERMANENT, ARTICLE, KEEP_DAMAGED, "another article came")   \
    X(DESYNC, "desync", PERMANENT, CONNECTION, CLOSE, "replies and questions do not match")       \
    X(UNKNOWN, "unknown", TRANSIENT, CONNECTION, CLOSE, "an answer nobody understands")           \
    X(PAR_BLOCKS, "par_blocks", TRANSIENT, JOB, FETCH_MORE, "more recovery blocks are needed")    \
    X(PAR_FAILED, "par_failed", PERMANENT, JOB, FAIL_JOB, "cannot be repaired")                   \
    X(UNPACK_CRC, "unpack_crc", TRANSIENT, JOB, REPAIR_ONCE, "an archive is damaged")             \
    X(UNPACK_VOLUME, "unpack_volume", TRANSIENT, JOB, REPAIR_ONCE, "an archive lacks a volume")   \
    X(PASSWORD, "password", PERMANENT, JOB, ASK_PASSWORD, "a password is needed")                 \
    X(UNSAFE_PATH, "unsafe_path", PERMANENT, JOB, QUARANTINE, "an unsafe path in an archive")     \
    X(BOMB, "bomb", PERMANENT, JOB, QUARANTINE, "an archive unpacks to far too much")             \
    X(UNWANTED, "unwanted", PERMANENT, JOB, QUARANTINE, "an unwanted type of file")               \
    X(NO_SPACE, "no_space", TRANSIENT, DISK, HOLD_DISK, "no space left on the disk")              \
    X(DISK_IO, "missing_workdir", PERMANENT, JOB, DISK_GRACE, "its directory cannot be written")  \
    X(URL_BUSY, "url_busy", TRANSIENT, JOB, RETRY_URL, "the NZB's site is busy (5xx, 429)")       \
    X(URL_REFUSED, "url_refused", PERMANENT, JOB, FAIL_JOB, "the NZB's site refuses it (40x)")    \
    X(NZB_INVALID, "nzb_invalid", PERMANENT, JOB, FAIL_JOB, "the NZB cannot be read")             \
    X(NZB_EMPTY, "nzb_empty", PERMANENT, JOB, FAIL_JOB, "the NZB names no article")               \
    X(STAGE, "stage", TRANSIENT, STAGE, RETRY_STAGE, "a step of post-processing went wrong")

enum coord_code {
#define X(id, name, category, scope, action, text) COORD_##id,
    COORD_CODE_MAP(X)
#undef X
        COORD_CODES,
};

struct coord_error {
    const char *name;
    const char *text;
    enum coord_category category;
    enum coord_scope scope;
    enum coord_action action;
};
/* A number from outside the list reads as UNKNOWN. */
const struct coord_error *coord_error(enum coord_code code);
const char *coord_category_name(enum coord_category c);
const char *coord_scope_name(enum coord_scope s);

#endif
