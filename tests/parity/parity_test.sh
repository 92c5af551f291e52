#!/bin/bash
# parity_test.sh PYTHON DUMP TEST: PYTHON is the one whose PyTorch is our LibTorch.
exec "$1" -B "$3" "$2"
