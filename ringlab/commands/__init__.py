"""The subcommands of ``ringlab``, one module each with a ``main(argv)``."""
