#!/bin/bash
# python_test.sh PYTHON TEST ARGUMENTS...: PYTHON is that of the virtual environment of deploy/setup.sh.
exec "$1" -B "${@:2}"
