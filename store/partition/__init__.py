"""What are the files of one log? Frames, segments, manifests, epochs, and what may be appended."""
