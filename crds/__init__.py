"""What a user may say: models, schedules and the rules that both doors share."""
