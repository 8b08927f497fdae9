/* cli_asm: what the verbs on assembly share: standard input and output, numbers of options. */
#ifndef IPU_CLI_ASM_H
#define IPU_CLI_ASM_H

#include "base/base.h"

/* A file, or the whole of standard input for "-"; g_free'd. Both end with a 0 that is not counted.
 */
bool cli_input(const char *path, size_t max_bytes, char **ret_text, size_t *ret_size,
               GError **error);
/* Writes a file, or to standard output for "-". */
bool cli_output(const char *path, const void *data, size_t size, GError **error);
/* An address or other 32-bit number, 0x for hexadecimal; NULL leaves *ret. */
bool cli_address(const char *option, const char *text, uint32_t *ret, GError **error);

#endif
