"""The page that shows results of drills: one HTML file that needs nothing else, out of `chaos.results` alone. Pure."""
