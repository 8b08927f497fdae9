# Verbs over Meson and Ninja. `make help` lists them.
BUILD ?= build
CHECK_SUITES = unit prop device kernel model robust browser

.PHONY: all run check check-long lint format asan bench install clean help setup tests-build
all: $(BUILD)/build.ninja  ## build ipu-stack into build/
	ninja -C $(BUILD)

setup:
	@tools/setup.sh

$(BUILD)/build.ninja: | setup
	meson setup $(BUILD)

run: all  ## install what is missing, build, compile and run the SigLIP MLP, say where the profile page is
	@tools/demo.sh $(BUILD)

check: all  ## install what is missing, build, run the tests; the last line counts them
	@tools/check.sh $(BUILD) $(CHECK_SUITES)

check-long: all  ## the long tests (large problems, long random runs)
	@tools/check.sh $(BUILD) long

asan:  ## the quick tests under AddressSanitizer and UBSan
	@tools/setup.sh
	@[ -f build-asan/build.ninja ] || meson setup build-asan -Db_sanitize=address,undefined \
	    -Db_lundef=false -Doptimization=1
	@tools/check.sh build-asan unit robust device

lint:  ## layering, compiler warnings with clang, clang-tidy
	@tools/setup.sh packages-dev.txt
	@tools/check-layers.sh
	@[ -f build-clang/build.ninja ] || CC=clang meson setup build-clang
	ninja -C build-clang
	git ls-files 'src/*.c' | xargs -n 8 -P $$(nproc) clang-tidy --quiet -p build-clang

format:  ## clang-format over the sources (tables are fenced)
	@tools/setup.sh packages-dev.txt
	clang-format -i $$(git ls-files 'src/*.[ch]' 'tests/*.c')

bench: all  ## cycles and bytes into bench/results.csv, speeds on stdout
	@bench/run.sh $(BUILD)

install: all  ## install below PREFIX (default /usr/local)
	meson install -C $(BUILD)

clean:  ## remove the build folders
	rm -rf build build-asan build-clang

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "make %-12s %s\n", $$1, $$2}'
