"""What running agents say, line by line, and what it means."""
