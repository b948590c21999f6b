"""`python -m besag`: the command line."""

from besag.cli import main

raise SystemExit(main())
