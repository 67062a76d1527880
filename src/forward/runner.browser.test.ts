import type { ComputeEngine } from '../compute/engine';
import { createGpuEngine } from '../gpu/gpu-engine';
import { GOLDEN_NAMES } from './golden.test.fixture';
import { describeGoldens, TIGHT } from './runner.test.cases';

const read = async (path: string) => {
  const response = await fetch(`/${path}`);
  if (!response.ok) throw new Error(`${path}: ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
};

describeGoldens('webgpu engine', GOLDEN_NAMES, read, createGpuEngine, {});
describeGoldens(
  'webgpu engine, little room',
  ['gpt2', 'gemma3', 'opt_postnorm_proj'],
  read,
  createGpuEngine,
  TIGHT,
);

/** The software adapter of the tests in the guise of a real one, so that the barrier forms of the kernels run. */
const asHardware = async () =>
  Object.create(await createGpuEngine(), { software: { value: false } }) as ComputeEngine;
describeGoldens('webgpu engine, kernels of real GPUs', ['llama', 'gpt_neox'], read, asHardware, {});
