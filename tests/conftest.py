"""What holds for all tests."""

import signal

# A shell that starts the tests in the background has SIGINT ignored, and every process below inherits that: then no
# Ctrl-C could be tested. A handler of Python's own is inherited by nobody, so child processes get the default back.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
