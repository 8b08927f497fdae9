#include "cli/cli_asm.h"

#include <stdio.h>
#include <string.h>

bool cli_input(const char *path, size_t max_bytes, char **ret_text, size_t *ret_size,
               GError **error) {
    if (strcmp(path, "-") != 0) {
        uint8_t *data;
        if (!file_read(path, max_bytes, &data, ret_size, error)) return false;
        *ret_text = g_realloc(data, *ret_size + 1);
        (*ret_text)[*ret_size] = 0;
        return true;
    }
    GString *s = g_string_new(NULL);
    char buffer[65536];
    for (size_t n; s->len <= max_bytes && (n = fread(buffer, 1, sizeof(buffer), stdin)) > 0;)
        g_string_append_len(s, buffer, (gssize)n);
    const bool fits = s->len <= max_bytes;
    if (!fits) diag_set(error, FILE_TOO_BIG, "<stdin>", (guint64)s->len, (guint64)max_bytes);
    *ret_size = s->len;
    *ret_text = g_string_free(s, !fits);
    return fits;
}

bool cli_output(const char *path, const void *data, size_t size, GError **error) {
    if (strcmp(path, "-") != 0) return file_write_atomic(path, data, size, error);
    fwrite(data, 1, size, stdout); /* main reports what could not be written */
    return true;
}

bool cli_address(const char *option, const char *text, uint32_t *ret, GError **error) {
    if (text == NULL) return true;
    char *end;
    const guint64 v = g_ascii_strtoull(text, &end, 0);
    if (end == text || *end != 0 || !g_ascii_isdigit(text[0])) {
        diag_set(error, CLI_NOT_NUMBER, option, text);
        return false;
    }
    if (v > UINT32_MAX) {
        diag_set(error, CLI_NUMBER, option, (gint64)v, INT64_C(0), (gint64)UINT32_MAX);
        return false;
    }
    *ret = (uint32_t)v;
    return true;
}
