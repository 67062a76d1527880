/** kohya: `lora_unet_down_blocks_1_…`; diffusers: `unet.down_blocks.1.…`; comfyui: `diffusion_model.input_blocks.4.1.…`. */
export const IMAGE_CONVENTIONS = ['kohya', 'diffusers', 'comfyui'] as const;
export type ImageConvention = (typeof IMAGE_CONVENTIONS)[number];
