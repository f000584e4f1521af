"""The engine: a resident text-diffusion model that fills gaps in code."""
