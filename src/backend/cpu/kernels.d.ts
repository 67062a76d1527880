/** The kernels of assembly/ as compiled by assembly/vite-plugin.ts: a WebAssembly module in base64. */
declare module 'virtual:cpu-kernels' {
  export const CPU_KERNELS: string;
}
