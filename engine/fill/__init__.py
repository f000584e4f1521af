"""From a request to candidates: canvases and the one loop that denoises them, widths, repair, ranking, edits."""
