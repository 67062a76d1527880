/** The page of contracts.ts: the contract tests of every kernel and method, run where the page is opened. */
import { runCases } from './contract-runner';

export interface ContractResult {
  file: string;
  passed: number;
  failed: string[];
}

declare global {
  interface Window {
    /** `begun` counts tests over all files: methods take minutes a file, and a test that hangs must look different. */
    contracts: { results: ContractResult[]; begun: number; title: string; isOver: boolean };
  }
}

const files = {
  ...import.meta.glob('../../src/backend/kernels/*.gpu.test.ts'),
  ...import.meta.glob('../../src/merge/tensor/*.gpu.test.ts'),
  ...import.meta.glob('../../src/merge/methods/contract.gpu.test.ts'),
};

window.contracts = { results: [], begun: 0, title: '', isOver: false };
const begins = (title: string) => {
  window.contracts.begun++;
  window.contracts.title = title;
};
for (const [file, load] of Object.entries(files)) {
  if (!file.includes(location.hash.slice(1))) continue;
  try {
    await load();
    window.contracts.results.push({ file, ...(await runCases(begins)) });
  } catch (thrown) {
    window.contracts.results.push({ file, passed: 0, failed: [String(thrown)] });
  }
}
window.contracts.isOver = true;
