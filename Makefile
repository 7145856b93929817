# SPDX-License-Identifier: GPL-3.0-or-later
# `make help` lists what there is to do.

INVENTORY ?= inventories/lab
# Further words for ansible-playbook, such as ARGS="--check --diff --limit gpu01"
ARGS ?=
PYTHON ?=

export PYTHON
export LC_ALL = C.UTF-8
export ANSIBLE_CONFIG = $(CURDIR)/ansible.cfg
export PATH := $(CURDIR)/.venv/bin:$(PATH)

.DEFAULT_GOAL := help
.PHONY: help setup setup-dev site audit report lab lab-down test lint unit sanity molecule chaos bench docs clean

help: ## Show this list
	@sed -n 's/^\([a-z][a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 12

setup: ## Make .venv with what the playbooks need (a second run reuses it)
	@tools/setup.sh run

setup-dev:
	@tools/setup.sh dev

site: setup ## Tune the hosts of INVENTORY and prove it; the default inventory is a lab host built here
	@tools/site.sh "$(INVENTORY)" site.yml $(ARGS)

audit: setup ## Report how the hosts of INVENTORY differ from what is wanted; changes nothing
	@tools/site.sh "$(INVENTORY)" playbooks/audit.yml $(ARGS)

report: setup ## Make the HTML page again from the newest run's JSON
	@.venv/bin/python -m tools.render_report $(or $(ARGS),artifacts/latest)

lab: setup ## Build and boot the lab host
	@tools/lab.sh up

lab-down: ## Stop the lab host
	@tools/lab.sh down

test: setup-dev ## Everything: lint, unit, sanity, molecule on the lab
	@python -m tools.run_tests

lint: setup-dev ## Static checks: style, types, YAML, roles, documentation, shell
	@python -m tools.lint

unit: setup-dev ## Unit tests, under other Pythons too where they are installed
	@python -m tools.unit $(ARGS)

sanity: setup-dev ## ansible-test sanity on the built collection
	@python -m tools.sanity $(ARGS)

molecule: setup-dev ## The Molecule scenarios, on the lab
	@python -m tools.scenarios $(ARGS)

chaos: setup-dev ## Cut a lab host's power at every step of a run, one after the other (12 hours); goes on where it was
	@python -m tools.chaos $(ARGS)

bench: setup ## Compare with playbooks of stock modules: speed, and who notices a drift
	@tools/bench.sh $(ARGS)

docs: setup-dev ## Renew the role tables and docs/tables.md, and write the module reference to docs/reference
	@python -m tools.role_tables
	@python -m tools.order_schema
	@python -m tools.tables_page
	@python -m tools.stories_page
	@tools/reference.sh

clean: lab-down ## Stop the lab and remove all that was made here, but for artifacts/
	@rm -rf .venv .cache .ansible .hypothesis tests/output docs/reference
