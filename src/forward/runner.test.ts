import { readFileSync } from 'node:fs';
import { createCpuBackend } from '../backend/cpu/cpu-backend';
import { GOLDEN_NAMES } from './golden.test.fixture';
import { describeGoldens, ROOMY, TIGHT } from './runner.test.cases';

const read = async (path: string) => new Uint8Array(readFileSync(path));
const engine = async () => createCpuBackend();

describeGoldens('cpu engine', GOLDEN_NAMES, read, engine, ROOMY);
describeGoldens('cpu engine, little room, legacy config', GOLDEN_NAMES, read, engine, TIGHT, 'legacy');
