"""Kernel sources of face_detection."""
