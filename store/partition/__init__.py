"""Files of one log: frames, segments, manifests, epochs, and the rules of what may be appended."""
