"""Makes the text files. Not needed by the tests, which bring their own."""
