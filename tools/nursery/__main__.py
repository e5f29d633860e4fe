"""`python -m tools.nursery FD PARENT LEVEL`: serve fork requests on the socket FD while process PARENT lives."""

import sys

from tools.nursery.server import serve

if __name__ == "__main__":
    serve(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
