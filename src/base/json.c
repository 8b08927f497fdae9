/* Text for JSON reports. */
#include "base/base.h"

#include <string.h>

void json_string(const char *s, GString *out) {
    char *valid = g_utf8_make_valid(s, -1);
    g_string_append_c(out, '"');
    for (const char *p = valid; *p != 0; p++) {
        const unsigned char ch = (unsigned char)*p;
        if (ch < 0x20 || strchr("\"\\<>&", ch) != NULL) g_string_append_printf(out, "\\u%04x", ch);
        else g_string_append_c(out, (char)ch);
    }
    g_string_append_c(out, '"');
    g_free(valid);
}
