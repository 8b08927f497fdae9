/* runtime: sessions. Opens a device, loads a package, moves tensors, runs.
 *
 * In:   a package; tensors by name, in row-major order, in the format of their binding.
 * Out:  output tensors, counters, the fault report.
 * Calls only the table of device functions. Layouts are packed and unpacked here from the slices of
 * the bindings; padding inside allocations that no slice names is written as zero at load time where
 * the compiler asked for it.
 * Ownership: a session owns its device; the package must outlive it.
 * Threads: one caller per session; packing runs with par_for. Errors: GError 1150..1199.
 * Facts: runtime 2.8, 4.10.
 */
#ifndef IPU_RUNTIME_H
#define IPU_RUNTIME_H

#include "device/device.h"
#include "package/package.h"

struct session;
/* Opens, loads, writes the parameters that the package carries. */
bool session_open(const struct device_functions *functions, const struct package *p,
                  const struct device_options *o, struct session **ret, GError **error);
void session_close(struct session *s); /* NULL is allowed */

/* Values of an input or parameter; `bytes` must be those of the binding, indices below its bound. */
bool session_set(struct session *s, const char *name, const void *data, uint64_t bytes,
                 GError **error);
/* Names the first input or parameter that was never set. */
bool session_ready(const struct session *s, GError **error);
/* False with an error on wrong use; a device fault is also an error (DIAG_DEVICE_FAULT), see
 * session_fault_print. */
bool session_run(struct session *s, GError **error);
bool session_get(struct session *s, const char *name, void *ret_data, uint64_t bytes,
                 GError **error);
/* Elements [first, first + n) of an output in row-major order, for streamed checks: calls `sink` with
 * whole blocks in ascending order. */
typedef void session_sink(const void *data, uint64_t first_element, uint64_t n, void *user);
bool session_stream(struct session *s, const char *name, uint64_t block_elements,
                    session_sink *sink, void *user, GError **error);

const struct device_functions *session_functions(const struct session *s);
struct device *session_device(const struct session *s);
const struct package *session_package(const struct session *s);

/* cycles_measured of architecture 5, from the marks of the run; false without marks. */
bool session_cycles(const struct session *s, uint64_t *ret_cycles);
/* The fault in full: tile, context, pc with symbol and line, cycle, exception, address with its owner,
 * the operation, code around pc, registers, where every context is; several lines. */
void session_fault_print(const struct session *s, GString *out);
/* The same as an object, or null; docs/tile.md describes its members. */
void session_fault_json(const struct session *s, GString *out);

#endif
