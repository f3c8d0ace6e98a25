"""The apiserver's work: what comes from outside is read, decided on and written; nothing here decides by itself."""
