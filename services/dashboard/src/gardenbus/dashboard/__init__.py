"""The landscape in a browser: it asks the API and follows announcements, and knows no store."""
