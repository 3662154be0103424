"""What runs on a device: kernels, taken out of functions, and their launches. Imported when asked for."""
