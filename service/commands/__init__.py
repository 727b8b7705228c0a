"""One module per subcommand of `5spot`; `service.cli` imports only the one that is asked for."""
