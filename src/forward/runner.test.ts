import { readFileSync } from 'node:fs';
import { createCpuEngine } from '../cpu/cpu-engine';
import { GOLDEN_NAMES } from './golden.test.fixture';
import { describeGoldens, ROOMY, TIGHT } from './runner.test.cases';

const read = async (path: string) => new Uint8Array(readFileSync(path));
const engine = async () => createCpuEngine();

describeGoldens('cpu engine', GOLDEN_NAMES, read, engine, ROOMY);
describeGoldens('cpu engine, little room, legacy config', GOLDEN_NAMES, read, engine, TIGHT, 'legacy');
