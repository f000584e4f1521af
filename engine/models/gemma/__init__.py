"""The family `diffusion_gemma`: Google's released checkpoints and the bundled model."""
