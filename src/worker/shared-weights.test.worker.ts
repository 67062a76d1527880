/** The engine of one text in a dedicated worker of a real browser, for its test. */
import * as Comlink from 'comlink';
import { startThread } from '../platform';
import threadUrl from './thread.worker?worker&url';

const [INPUTS, OUTPUTS] = [1024, 4096];
const values = (count: number, seed: number) =>
  new Uint8Array(Float32Array.from({ length: count }, (_, i) => Math.fround(Math.sin(i * seed))).buffer);

// the kernels' WebAssembly is a file, and calls come before it has
const engines = import('../host/backends');

const rig = {
  /** The same product on an engine of this thread alone and on one with threads, `times` over. */
  async products(times: number) {
    const { openEvaluationBackends } = await engines;
    const { createCpuBackend } = await import('../backend/cpu/cpu-backend');
    const { matmulPacked, PANEL, packPanels } = await import('../backend/kernels/matmul');
    const { startThreadsWith } = await import('../host/threads');
    let started = 0;
    startThreadsWith(() => {
      started++;
      return startThread(threadUrl, 'helper');
    });
    const [shared] = await openEvaluationBackends('cpu', 1, 0);
    const answers: string[] = [];
    for (const engine of [createCpuBackend(), shared]) {
      const weights = (engine.allocateWeights ?? engine.allocate)(INPUTS * OUTPUTS * 4, 'weights');
      engine.write(weights, 0, values(INPUTS * OUTPUTS, 1.7));
      const room = engine.allocate(PANEL * INPUTS * 4, 'room');
      engine.run(packPanels, {
        params: { dtype: 0, inputs: INPUTS, outputs: OUTPUTS },
        buffers: { weights, room },
      });
      const x = engine.allocate(INPUTS * 4, 'x');
      engine.write(x, 0, values(INPUTS, 0.3));
      const y = engine.allocate(OUTPUTS * 4, 'y');
      const shape = { rows: 1, outputs: OUTPUTS, inputs4: INPUTS / 4, w_first: 0, y_begin: 0 };
      const params = { ...shape, x_stride4: INPUTS / 4, y_stride: OUTPUTS, add: 0, biased: 0, scale: 1 };
      for (let i = 0; i < times; i++) {
        engine.run(matmulPacked.F32, { params, buffers: { weights, x, bias: x, y } });
        const [bytes] = await engine.read([{ buffer: y, byteLength: OUTPUTS * 4 }]);
        answers.push(String(bytes));
      }
      engine.close();
    }
    return { isShared: shared.allocateWeights !== undefined, started, different: new Set(answers).size };
  },
};

export type SharedWeightsRig = typeof rig;
Comlink.expose(rig);
