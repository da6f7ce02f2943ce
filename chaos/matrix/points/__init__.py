"""The rows of the matrix, by whose boundary it is."""
