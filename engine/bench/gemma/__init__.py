"""The family `diffusion_gemma` under measurement."""
