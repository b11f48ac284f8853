# Everything works from a fresh clone: the environments are made when they are needed.
#
# To see it work:
#   make demo                 a daemon, a producer and a worker for 6 s; in a terminal until Ctrl-C
#   make demo-pipeline        three daemons, their events, and a report on them
#   make demo-celery          one application of Celery on Redis and on Disque, side by side: 1 min
#   make demo-frameworks      a shop in Celery, Django, Django-Q2, dramatiq and taskiq: 40 s
#
# To change it:
#   make quick                the fast unit tests, without Spark and lint: 1 min
#   make test T=MODULES       only these tests, such as T=tests.core.delivery.test_acks
#   make test                 both gates below, the second if the first passes; should end within 25 min
#   make gate-1               what every change must pass, on two cores within 12 min
#   make gate-2               clusters of processes, Spark, frameworks
#   make coverage             branches that the tests of the inner packages never took: 3 min
#   make sim                  simulated clusters with faults, 200 of them; SEEDS=1-5000 for others
#   make mutation             small defects, and whether tests notice; MUTANTS=, SEED=, FILES=, MUTATION_S=
#   make fuzz                 guided fuzzing of what strangers send and what lies on disk; FUZZ_S=60
#   make console-incidents    twelve incidents, and how soon the console names each: 8 min
#   make console-quiet        a cluster without incidents, of which the console must tell nothing; QUIET_S=3600
#   make framework-kills      workers and nodes killed under each framework, and imports: 15 min
#   make framework-older      all tests of frameworks with their releases of a year before: 5 min
#   make spark-kill           streams, a drain, a table that is compacted, and its results, killed twenty times each
#   make spark-standalone     the pipeline on a standalone cluster, whose workers are killed, too: 5 to 20 min
#   make clean                removes environments and what was built
#
# Stages of the first gate, and about how long each takes on two cores, environment made:
#   make lint                 ruff: 2 s
#   make types                mypy --strict: 20 s
#   make docs                 the links of the documentation: 1 s
#   make unit                 unit tests on the plain package: 3 min
#   make mutants              planted defects, which the simulator must find: 3 min
#   make acceptance           real processes, the daemon's: 1 min
#   make sim-some             65 simulated clusters, and those that failed once: 1.5 min
#   make unit-compiled        unit tests on the compiled package: 1 min
#   make acceptance-compiled  real processes, compiled: 8 min
#
# Stages of the second gate:
#   make spark                reading, writing, and the pipeline on Spark: up to 10 min
#   make spark-oldest         sources and sinks on PySpark 4.0: 1 min
#   make acceptance-spark     Spark with real nodes, which are killed, too, and with S3: up to 20 min
#   make acceptance-cluster   clusters of real processes, two at a time: 5 to 8 min
#   make acceptance-processes daemons of several processes: 2 min
#   make frameworks           workers and producers of frameworks, as processes: 2 to 4 min
#
# To measure it:
#   make bench                speed and memory beside redis-server (needs cc and redis-server)
#   make bench-versions       this version beside another one: OTHER=path/to/its/python
#   make bench-idle           what an idle cluster sends, simulated
#   make bench-clients        the blocking client beside bare redis-py
#   make bench-workers        workers beside RQ and Celery (needs cc and redis-server)
#   make bench-frameworks     workers of frameworks on Disque beside the same on Redis
#   make bench-peers          beside RabbitMQ, NATS JetStream, Redis Streams, beanstalkd, and other workers: 1 h
#   make bench-peers-setup    installs what bench-peers needs, by apt-get
#   make bench-pipeline       the pipeline on Spark over 10 million events
#
# To publish it:
#   make console-shots        pictures of every page of the console, for docs: 4 min
#   make site                 the documentation as a static site, in build/site: 30 s
#   make dist                 an sdist, and wheels for every Python here, each tried out: 2 min for a Python
#
# `make help` prints this list.

# The interpreter that the distribution optimized, which saves a sixth of the time, if it will do:
# recent enough, able to make environments and to compile for.
OPTIMIZED := /usr/bin/python3
WILL_DO = import ensurepip, os, sys, sysconfig; sys.exit(sys.version_info < (3, 11) or not os.path.exists(sysconfig.get_path("include") + "/Python.h"))
PYTHON ?= $(eval PYTHON := $(shell $(OPTIMIZED) -c '$(WILL_DO)' 2> /dev/null && echo $(OPTIMIZED) || echo python3))$(PYTHON)
VENV := .venv
BIN := $(VENV)/bin
COMPILED := build/compiled
BENCH_VENV := build/bench
PEERS := build/peers
JOBS ?= 2
# Found out once: starting Python takes its time, and every rule about the compiled package asks.
CAN_COMPILE = $(eval CAN_COMPILE := $(shell $(PYTHON) -c 'import shutil, sysconfig, os; print(int(bool(shutil.which("cc")) and os.path.exists(sysconfig.get_path("include") + "/Python.h")))'))$(CAN_COMPILE)
SOURCES := $(shell find src twisted -name '*.py' -o -name py.typed) setup.py setup.cfg pyproject.toml
PIP := $(BIN)/pip --disable-pip-version-check --quiet

export PIP_ROOT_USER_ACTION := ignore
export REDIS_PY_7 := $(CURDIR)/$(VENV)/redis-7

.DEFAULT_GOAL := help
.PHONY: help demo demo-celery demo-pipeline demo-frameworks quick test gate-1 gate-2 coverage sim mutation fuzz framework-kills framework-older spark-kill spark-standalone clean
.PHONY: lint types docs unit mutants acceptance acceptance-cluster acceptance-processes acceptance-spark frameworks spark spark-oldest sim-some unit-compiled acceptance-compiled
.PHONY: bench bench-versions bench-idle bench-clients bench-workers bench-frameworks bench-peers bench-peers-setup bench-pipeline
.PHONY: console-incidents console-quiet console-shots site dist

help:
	@sed -n '/^$$/q; s/^# \{0,1\}//p' $(firstword $(MAKEFILE_LIST))

# -- environments ------------------------------------------------------------------------------

$(VENV)/.made: setup.cfg setup.py pyproject.toml
	@echo "Making an environment in $(VENV): one to two minutes, once."
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	DISQUE_TX_COMPILE=0 $(PIP) install --editable .
	touch $@

# Besides, what one extra asks for.
$(addprefix $(VENV)/.made-,lake site dist): $(VENV)/.made-%: $(VENV)/.made
	DISQUE_TX_COMPILE=0 $(PIP) install --editable '.[$*]'
	touch $@

# What all tests need but those of Spark.
$(VENV)/.made-quick: $(VENV)/.made
	DISQUE_TX_COMPILE=0 $(PIP) install --editable '.[test]'
	$(PIP) install --target $(VENV)/redis-7 --upgrade 'redis>=7,<8'
	$(PIP) install --no-deps redis-work-queue==0.1.5
	touch $@

$(VENV)/.made-test: $(VENV)/.made-quick
	DISQUE_TX_COMPILE=0 $(PIP) install --editable '.[test,lint,lake,frameworks]'
	touch $@

$(VENV)/.made-spark-oldest: $(VENV)/.made-test
	$(PIP) install --no-deps --target $(VENV)/pyspark-4.0 --upgrade pyspark==4.0.0
	touch $@

# The compiled package lies in a folder of its own and is put in front of the plain one. It is built
# where nothing is installed yet, as on a new machine.
$(COMPILED)/.made: $(VENV)/.made-test $(SOURCES)
	rm -rf $(COMPILED) build/builder
	$(PYTHON) -m venv build/builder
	DISQUE_TX_COMPILE=1 build/builder/bin/pip --disable-pip-version-check --quiet install --no-deps --target $(COMPILED) .
	touch $@

# -- what people run ---------------------------------------------------------------------------

demo: say-demo $(VENV)/.made
	@$(BIN)/python -m disque_tx.cli.programs.demo $(if $(STAY),--stay)

say-demo:
	@test -e $(VENV)/.made || echo "A daemon, a producer and a worker will run for 6 seconds. Their environment is made first."

# Three daemons, a producer, flaky workers, and the whole pipeline up to the report.
demo-pipeline: $(VENV)/.made-lake
	@$(BIN)/python examples/pipeline/run.py

# What `python examples/run.py celery` shows, for each framework in turn.
demo-frameworks: $(VENV)/.made-test
	@for name in celery django django_q2 dramatiq taskiq; do \
	    echo "== $$name"; PYTHONPATH=$(CURDIR)/src $(BIN)/python examples/run.py $$name || exit 1; \
	done

# The same application of Celery on Redis and on Disque: which tasks are done once, and which again.
demo-celery: $(VENV)/.made-test
	@PYTHONPATH=$(CURDIR)/src $(BIN)/python examples/brokers/compare.py

# Two stages run at the same time: first what takes seconds, then those that take longest. In the second
# gate there are three, for much of it waits: clusters until nodes are missed, Spark for its tasks.
GATE_1 = types lint docs $(if $(filter 1,$(CAN_COMPILE)),acceptance-compiled) unit mutants $(if $(filter 1,$(CAN_COMPILE)),unit-compiled) sim-some acceptance
GATE_2 = acceptance-cluster acceptance-spark spark frameworks acceptance-processes spark-oldest
# What both need, made before the time of any stage begins.
READY = $(VENV)/.made-test $(if $(filter 1,$(CAN_COMPILE)),$(COMPILED)/.made)

ifdef T
# Only these tests, with the environment that they need, and shown one by one.
test: override JOBS :=
test: $(VENV)/.made-$(if $(findstring spark,$(T)),test,quick)
	PYTHONPATH=$(CURDIR)/src; export PYTHONPATH; $(if $(findstring mutants,$(T)),PYTHONHASHSEED=0; export PYTHONHASHSEED;) $(call TRIAL,build/trial-some,$(T))
else
test: clear-results
	@$(MAKE) --no-print-directory run-gate-1
	@$(MAKE) --no-print-directory run-gate-2

gate-1 gate-2: clear-results
	@$(MAKE) --no-print-directory run-$@

clear-results:
	@rm -f build/*.tally build/stages

# Every stage of a gate runs, whatever fails, and shows its output when it ends. At the end, all stages
# until now are listed, and the tests that failed.
SUMMARY = $(if $(filter 1,$(CAN_COMPILE)),,echo "No C compiler or no Python headers here: the compiled package was not tested.";) \
	cat build/stages; $(BIN)/python -m tests.tally && ! grep --quiet failed build/stages

run-gate-1: $(READY)
	@mkdir -p build; \
	$(MAKE) --no-print-directory --jobs 2 --output-sync=target $(GATE_1:%=stage-%); \
	$(SUMMARY)

run-gate-2: $(READY) $(VENV)/.made-spark-oldest
	@mkdir -p build; \
	$(MAKE) --no-print-directory --jobs 3 --output-sync=target $(GATE_2:%=stage-%); \
	$(SUMMARY)

stage-%:
	@begun=$$(date +%s); result=passed; \
	$(MAKE) --no-print-directory $* || result=failed; \
	echo "$*: $$result, $$(($$(date +%s) - begun)) s" | tee -a build/stages
endif

lint: $(VENV)/.made-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.made-test
	$(BIN)/mypy src tests

# Tests with single processes, or with a few.
ACCEPTANCE := $(subst /,.,$(basename $(wildcard tests/acceptance/test_*.py)))
TOP_LEVEL := $(subst /,.,$(basename $(wildcard tests/test_*.py)))
# The daemon is tested plain and compiled; what only uses one, and is not compiled itself, once.
DAEMON := $(addprefix tests.acceptance.test_,connections durability eventlog libraries listening logfiles process protocols transcripts)
UNIT := $(filter-out tests.acceptance tests.fuzz tests.mutants tests.spark,$(subst /,.,$(patsubst %/__init__.py,%,$(wildcard tests/*/__init__.py)))) $(TOP_LEVEL)

TRIAL = mkdir -p build && $(BIN)/python -m twisted.trial --temp-directory $(1) $(if $(JOBS),--jobs $(JOBS)) $(2) 2>&1 | $(BIN)/python -m tests.tally $(1)

# The packages that stand apart from the world. Their own tests must take nearly every branch of them.
INNER := core wire commands engine
COVERED_MIN := 95

quick: $(VENV)/.made-quick
	$(call TRIAL,build/trial-quick,$(INNER:%=tests.%) tests.stateful tests.sim $(TOP_LEVEL))

coverage: $(VENV)/.made-quick
	$(BIN)/coverage erase
	$(BIN)/coverage run -m twisted.trial --temp-directory build/trial-coverage $(if $(JOBS),--jobs $(JOBS)) $(INNER:%=tests.%) tests.stateful tests.services
	$(BIN)/coverage combine --quiet
	@status=0; for package in $(INNER); do \
	    $(BIN)/coverage report --include="src/disque_tx/$$package/*" --fail-under=$(COVERED_MIN) || status=1; \
	done; exit $$status

unit: $(VENV)/.made-test
	$(call TRIAL,build/trial-unit,$(UNIT))

acceptance: $(VENV)/.made-test
	$(call TRIAL,build/trial-acceptance,$(if $(filter 1,$(CAN_COMPILE)),$(DAEMON),$(ACCEPTANCE)))

unit-compiled: $(COMPILED)/.made
	PYTHONPATH=$(CURDIR)/$(COMPILED); export PYTHONPATH; $(call TRIAL,build/trial-unit-compiled,$(INNER:%=tests.%) tests.stateful tests.sim tests.services)

acceptance-compiled: $(COMPILED)/.made
	PYTHONPATH=$(CURDIR)/$(COMPILED); export PYTHONPATH; $(call TRIAL,build/trial-acceptance-compiled,$(ACCEPTANCE))

# On the compiled package if there can be one. Two clusters at a time: each job has its own, and claims
# their ports. What tests print, such as how many jobs went through a failing cluster, is shown in the end.
acceptance-cluster acceptance-processes: $(if $(filter 1,$(CAN_COMPILE)),$(COMPILED)/.made,$(VENV)/.made-test)
	PYTHONPATH=$(if $(filter 1,$(CAN_COMPILE)),$(CURDIR)/$(COMPILED)); export PYTHONPATH; $(call TRIAL,build/trial-$@,$(if $(filter %-cluster,$@),tests.acceptance.cluster,tests.acceptance.processes)); \
	status=$$?; cat build/trial-$@/*/err.log; exit $$status

# Task queues of others on Disque; on the compiled package if there can be one.
frameworks: $(if $(filter 1,$(CAN_COMPILE)),$(COMPILED)/.made,$(VENV)/.made-test)
	PYTHONPATH=$(if $(filter 1,$(CAN_COMPILE)),$(CURDIR)/$(COMPILED)); export PYTHONPATH; $(call TRIAL,build/trial-frameworks,tests.acceptance.integrations)

# Spark looks for formats in folders of the path only, which an editable installation is none of.
ON_PATH = $(CURDIR)/$(if $(filter 1,$(CAN_COMPILE)),$(COMPILED),src)

# Java's second compiler and its parallel collector cost more than they save within some minutes.
spark acceptance-spark spark-oldest: export SPARK_SUBMIT_OPTS := -XX:TieredStopAtLevel=1 -XX:+UseSerialGC

# One Spark for all tests of a stage; on the compiled package if there can be one.
spark acceptance-spark: override JOBS :=
spark acceptance-spark: $(if $(filter 1,$(CAN_COMPILE)),$(COMPILED)/.made,$(VENV)/.made-test)
	PYTHONPATH=$(ON_PATH); export PYTHONPATH; $(call TRIAL,build/trial-$@,$(if $(filter spark,$@),tests.spark,tests.acceptance.spark))

# The oldest Spark that is supported, in front of the newest.
spark-oldest: override JOBS :=
spark-oldest: $(VENV)/.made-spark-oldest $(if $(filter 1,$(CAN_COMPILE)),$(COMPILED)/.made,$(VENV)/.made-test)
	PYTHONPATH=$(CURDIR)/$(VENV)/pyspark-4.0:$(ON_PATH); export PYTHONPATH; $(call TRIAL,build/trial-$@,tests.spark.formats.test_older tests.acceptance.spark.test_versions)

# Workers of each framework killed twenty times, nodes ten times, and imports twenty times.
framework-kills: override JOBS :=
framework-kills: $(if $(filter 1,$(CAN_COMPILE)),$(COMPILED)/.made,$(VENV)/.made-test)
	WORKER_KILLS=20 NODE_KILLS=10 IMPORT_KILLS=20 PYTHONPATH=$(ON_PATH); export WORKER_KILLS NODE_KILLS IMPORT_KILLS PYTHONPATH; $(call TRIAL,build/trial-framework-kills,tests.acceptance.integrations.test_kills tests.acceptance.test_imports)

# What CI does with the newest releases.
framework-older: override JOBS :=
framework-older:
	test -x build/older/bin/python || $(PYTHON) -m venv build/older
	DISQUE_TX_COMPILE=0 build/older/bin/pip --disable-pip-version-check --quiet install --constraint tests/older-frameworks.txt '.[test,frameworks]'
	PYTHONPATH=$(CURDIR)/src build/older/bin/python -m twisted.trial --temp-directory build/trial-older tests.integrations tests.acceptance.integrations tests.acceptance.test_imports

# Streams, a drain, and a table of events, killed 24 times each, which is each way for those into
# Delta tables, in whose runs nodes die and processes hang as well, over a million jobs in all; the
# counts of jobs that were lost or doubled are added to build/spark-kills.jsonl.
spark-kill: override JOBS :=
spark-kill: $(if $(filter 1,$(CAN_COMPILE)),$(COMPILED)/.made,$(VENV)/.made-test)
	SPARK_KILLS=24 SPARK_KILL_JOBS=14000 SPARK_KILL_REPORT=$(CURDIR)/build/spark-kills.jsonl PYTHONPATH=$(ON_PATH); export SPARK_KILLS SPARK_KILL_JOBS SPARK_KILL_REPORT PYTHONPATH; $(call TRIAL,build/trial-spark-kill,tests.acceptance.spark.test_kills tests.acceptance.spark.test_table_kills tests.acceptance.spark.test_lifecycle_kills tests.acceptance.spark.test_lake.KillTests)

# From a queue to the report with executors that share nothing with the driver.
spark-standalone: override JOBS :=
spark-standalone: $(if $(filter 1,$(CAN_COMPILE)),$(COMPILED)/.made,$(VENV)/.made-test)
	PYTHONPATH=$(ON_PATH); export PYTHONPATH; $(call TRIAL,build/trial-$@,tests.acceptance.spark.standaloneruns)

# The package, compiled anew, in an environment of its own.
bench-install:
	test -x $(BENCH_VENV)/bin/python || $(PYTHON) -m venv $(BENCH_VENV)
	DISQUE_TX_COMPILE=1 $(BENCH_VENV)/bin/pip --quiet --disable-pip-version-check install --force-reinstall .

bench: bench-install
	$(BENCH_VENV)/bin/python -m benchmarks.daemon $(BENCH_ARGS)

# This version beside another one, in turn. OTHER: Python in an environment that has the other one.
VERSION_ROWS ?= one,depth1,depth16,blocked,aof,copies1,copies16,backlog
bench-versions: bench-install
	$(BENCH_VENV)/bin/python -m benchmarks.daemon --other $(OTHER) --only $(VERSION_ROWS) $(BENCH_ARGS)

# Bytes on the bus of clusters that have nothing to do, simulated.
bench-idle: $(VENV)/.made
	$(BIN)/python benchmarks/idlecluster.py

# The blocking client beside bare redis-py.
bench-clients: $(VENV)/.made-test
	$(BIN)/python benchmarks/clients.py

# Other people's workers, which are installed here only.
$(PEERS)/.made:
	test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/pip --quiet --disable-pip-version-check install rq 'celery[redis]' 'dramatiq[redis]' taskiq-redis
	touch $@

# The worker beside RQ and Celery.
bench-workers: bench-install $(PEERS)/.made
	$(BENCH_VENV)/bin/python benchmarks/workers.py $(CURDIR)/$(PEERS)/bin/python $(BENCH_ARGS)

# Other people's servers, from Debian. The benchmark starts them itself, in folders of its own; the
# services that the packages may have started are not needed, and only take processor time.
PEER_PACKAGES := gcc rabbitmq-server nats-server redis-server beanstalkd
bench-peers-setup: $(PEERS)/.made
	@command -v apt-get > /dev/null || { echo "There is no apt-get here. Needed are the servers of these Debian packages: $(PEER_PACKAGES)"; exit 1; }
	$(if $(filter 0,$(shell id -u)),,sudo )apt-get install --yes --no-install-recommends $(PEER_PACKAGES)

# Disque and its worker beside other people's, in turn.
bench-peers: bench-install $(PEERS)/.made
	$(BENCH_VENV)/bin/python -m benchmarks.peers --workers $(PEERS)/bin/python $(BENCH_ARGS)

# Workers of each framework on Disque and on Redis in turn.
bench-frameworks:
	test -x $(BENCH_VENV)/bin/python || $(PYTHON) -m venv $(BENCH_VENV)
	DISQUE_TX_COMPILE=1 $(BENCH_VENV)/bin/pip --quiet --disable-pip-version-check install --force-reinstall '.[frameworks]'
	$(BENCH_VENV)/bin/pip --quiet --disable-pip-version-check install 'celery[redis]' 'dramatiq[redis]' taskiq-redis
	$(BENCH_VENV)/bin/python -m benchmarks.frameworks $(BENCH_ARGS)

# The pipeline over 10 million events, how fast jobs go through Spark, and into Delta tables.
bench-pipeline: $(if $(filter 1,$(CAN_COMPILE)),$(COMPILED)/.made,$(VENV)/.made-test)
	PYTHONPATH=$(ON_PATH) $(BIN)/python -m benchmarks.pipeline $(BENCH_ARGS)
	PYTHONPATH=$(ON_PATH) $(BIN)/python -m benchmarks.sparkio
	PYTHONPATH=$(ON_PATH) $(BIN)/python -m benchmarks.lakes

# Simulated clusters, from these seeds and those that failed once; more with SEEDS=1-5000.
SEEDS ?= 1-200
SIM = PYTHONPATH=$(if $(filter 1,$(CAN_COMPILE)),$(CURDIR)/$(COMPILED)) $(BIN)/python -m disque_tx.sim --jobs $(JOBS)

sim: $(if $(filter 1,$(CAN_COMPILE)),$(COMPILED)/.made,$(VENV)/.made-test)
	$(SIM) --seeds $(SEEDS)

# Part of the tests.
sim-some: $(if $(filter 1,$(CAN_COMPILE)),$(COMPILED)/.made,$(VENV)/.made-test)
	$(SIM) --seeds 1-50,8000000-8000014

# Planted defects, which only plain Python can take.
mutants: $(VENV)/.made-test
	PYTHONHASHSEED=0; export PYTHONHASHSEED; $(call TRIAL,build/trial-mutants,tests.mutants)

# A sample of small defects, and which of them no test notices; some files or packages only with FILES=,
# for a time only with MUTATION_S=.
MUTANTS ?= 150
SEED ?= 1
MUTATION_S ?= 0
FILES ?= src/disque_tx

mutation: $(VENV)/.made-test
	nice $(BIN)/python -m tests.mutation $(FILES) --mutants $(MUTANTS) --seed $(SEED) --seconds $(MUTATION_S)

# Each fuzzer runs that long.
FUZZ_S ?= 60

fuzz: $(VENV)/.made-test
	DISQUE_TX_COMPILE=0 $(PIP) install --editable '.[fuzz]'
	for target in bus job nodesfile http beanstalk; do \
	    $(BIN)/python -m tests.fuzz $$target -max_total_time=$(FUZZ_S) || exit 1; \
	done

docs: $(VENV)/.made-test
	$(BIN)/python -m tests.links README.md ARCHITECTURE.md CHANGELOG.md CONTRIBUTING.md SECURITY.md docs

# Warnings are errors: a link that leads nowhere, a page that no index lists, a docstring that is no
# reStructuredText.
site: $(VENV)/.made-quick $(VENV)/.made-site
	rm -rf build/site
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet -c docs -d build/site-cache . build/site
	$(BIN)/python -m twisted.trial --temp-directory build/trial-site tests.acceptance.site
	@echo "Open build/site/index.html in a browser."

# Each is planted in a cluster of three nodes that works; what is printed says after how many seconds it
# was the first finding, and after how many all was well again.
QUIET_S ?= 3600
console-incidents console-quiet: $(if $(filter 1,$(CAN_COMPILE)),$(COMPILED)/.made,$(VENV)/.made-test)
	PYTHONPATH=$(ON_PATH) $(BIN)/python -m tests.acceptance.incidents $(if $(filter console-quiet,$@),--quiet $(QUIET_S))

# Every page, with light and with dark colours, on a screen and on a phone; needs Chromium.
console-shots: $(VENV)/.made-quick
	PYTHONPATH=$(CURDIR)/src $(BIN)/python -m tests.acceptance.consolepictures

# Interpreters for which wheels are compiled: those of the supported versions that are found here.
PYTHONS ?= $(shell for version in 3.11 3.12 3.13 3.14; do \
    for python in python$$version $(HOME)/.pyenv/versions/$$version*/bin/python; do \
        "$$python" -c 'import os, sys, sysconfig; open(sysconfig.get_path("include") + "/Python.h"); print(os.path.realpath(sys.executable))' 2> /dev/null && break; \
    done; done; true)

# All wheels are built from the sdist, which so proves to be complete. auditwheel names the oldest glibc
# with which a compiled one works. Each is installed into an empty environment, where nothing of the tree
# is at hand, and works there, on the interpreter that it is for.
dist: $(VENV)/.made-dist
	rm -rf dist build/wheels
	DISQUE_TX_COMPILE=0 $(BIN)/python -m build
	$(if $(filter 1,$(CAN_COMPILE)),@for python in $(PYTHONS); do \
	    echo "== compiled for $$python"; \
	    rm -rf build/builder && $$python -m venv build/builder || exit 1; \
	    DISQUE_TX_COMPILE=1 build/builder/bin/pip --disable-pip-version-check --quiet wheel --no-deps --wheel-dir build/wheels dist/*.tar.gz || exit 1; \
	    PATH="$(abspath $(BIN)):$$PATH" $(BIN)/auditwheel repair --wheel-dir dist build/wheels/*.whl || exit 1; \
	    rm -rf build/wheels build/builder; \
	done)
	$(BIN)/twine check --strict dist/*
	@for wheel in $(CURDIR)/dist/*.whl; do \
	    echo "== $$wheel"; \
	    python=$(PYTHON); \
	    for one in $(PYTHONS); do \
	        case $$wheel in *-$$($$one -c 'import sys; print("cp%d%d" % sys.version_info[:2])')-*) python=$$one;; esac; \
	    done; \
	    folder=$$(mktemp -d); trap "rm -rf $$folder" EXIT; \
	    $$python -m venv $$folder/venv && cd $$folder || exit 1; \
	    venv/bin/pip --disable-pip-version-check --quiet install $$wheel || exit 1; \
	    venv/bin/disque-server --version && venv/bin/disque --version || exit 1; \
	    venv/bin/twistd --help | grep -w disque || exit 1; \
	    venv/bin/python -m disque_tx.cli.programs.demo < /dev/null || exit 1; \
	    cd $(CURDIR); rm -rf $$folder; \
	done
	@ls -l dist

clean:
	rm -rf $(VENV) .tox build dist src/*.egg-info .mypy_cache .ruff_cache .hypothesis
