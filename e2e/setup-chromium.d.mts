export const CHROMIUM_ARGS: readonly string[];
export const GPU_ARGS: readonly string[];
export const SWIFTSHADER_ARGS: readonly string[];
export function swiftShaderEnvironment(): Record<string, string>;
export function findChromium(): string | undefined;
