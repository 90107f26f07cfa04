"""For every run of pytest here, be it of tests or of notebooks."""

pytest_plugins = ["tests.accounting", "tests.notebooks.kernel_watch"]
