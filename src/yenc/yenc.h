#ifndef YENC_YENC_H
#define YENC_YENC_H
#endif
