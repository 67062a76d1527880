/** Set-up of the tests on WebGPU in Node. A suite that quietly skips the GPU proves nothing: without an adapter all of them fail. */
import { offerWebGpu } from '../../host/node/platform';

// the files of a process share it
if (globalThis.navigator?.gpu === undefined) {
  Object.defineProperty(globalThis, 'navigator', { value: {}, configurable: true });
  await offerWebGpu();
}
if (!(await navigator.gpu.requestAdapter())) {
  throw new Error(
    'Dawn finds no graphics adapter. The tests take the software one of the installed Chromium: run "npm run setup".',
  );
}
