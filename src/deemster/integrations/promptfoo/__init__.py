"""What a config of promptfoo holds, part by part: its files, prompts, providers, tests and assertions."""
