import { readFileSync } from 'node:fs';
import { createCpuBackend } from '../backend/cpu/cpu-backend';
import { openSharedWeights } from '../backend/cpu/shared-weights';
import { GOLDEN_NAMES } from './golden.test.fixture';
import { describeGoldens, ROOMY, TIGHT } from './runner.test.cases';

const read = async (path: string) => new Uint8Array(readFileSync(path));
const engine = async () => createCpuBackend();

describeGoldens('cpu engine', GOLDEN_NAMES, read, engine, ROOMY);
const apart = async () => createCpuBackend(openSharedWeights(0, () => () => undefined));
describeGoldens('cpu engine, weights in memories of their own', GOLDEN_NAMES, read, apart, ROOMY);
describeGoldens('cpu engine, little room, legacy config', GOLDEN_NAMES, read, engine, TIGHT, 'legacy');
