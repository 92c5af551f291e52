#!/bin/bash
# python_test.sh TEST ARGUMENTS...: with Debian's Python, which has yaml.
exec /usr/bin/python3 -B "$@"
