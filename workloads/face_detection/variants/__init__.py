"""Variants of face_detection: the integral images, the ladder of detectors, whole detections, peers."""
