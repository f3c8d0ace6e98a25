"""The landscape in a browser: a client of the API and a follower of announcements, without access to the store."""
